/** Describes how a connection reaches its server, seen from our end: the server may see a proxy's connection. */
import { isIPv6 } from "node:net";
import type { TLSSocket } from "node:tls";
import { LINK_ADDRESS, LINK_TLS } from "../external";
import type { NewConnection } from "./client";

export interface ConnectionLink {
  /** The TLS version, such as `TLSv1.3`; undefined if the connection is not encrypted. */
  tls: string | undefined;
  /** The address of the server, or of a proxy in front of it. */
  address: string | undefined;
  family: "IPv4" | "IPv6" | undefined;
}

export function linkOf({ socket, parameters }: NewConnection): ConnectionLink {
  const own = socket as Partial<TLSSocket>;
  const isThroughGateway = LINK_ADDRESS in parameters;
  const tls = isThroughGateway ? parameters[LINK_TLS] : own.encrypted ? (own.getProtocol?.() ?? "TLS") : "";
  const address = isThroughGateway ? parameters[LINK_ADDRESS] : own.remoteAddress;
  return {
    tls: tls === "" ? undefined : tls,
    address,
    family: address === undefined ? undefined : isIPv6(address) ? "IPv6" : "IPv4",
  };
}
