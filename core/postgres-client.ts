/** The one place that makes a driver's pool on a server that holds replicas: one of ours, or one of a customer's. */
import { isIPv6 } from "node:net";
import postgres, { type Options, type PostgresType } from "postgres";
import { gateway } from "./external/gateway";
import type { ExternalServer, ServerUrl } from "./external/server";
import { SESSION_SETTINGS } from "./postgres/session-settings";
import { postgresLine } from "./postgres-line";

/** A pool that connects when first used: to a server of ours directly, to a customer's through the gateway. */
export function connectServer<T extends Record<string, PostgresType> = Record<never, never>>(
  url: ServerUrl,
  options: Options<T>,
): ReturnType<typeof postgres<T>> {
  const connection = { ...SESSION_SETTINGS, ...options.connection };
  const where = typeof url === "string" ? ipv6Address(url) : throughGateway(url, connection);
  // The types know one host only, the driver takes several.
  const all = { ...postgresLine(), ...options, connection, ...where } as unknown as Options<T>;
  return typeof url === "string" ? postgres<T>(url, all) : postgres<T>(all);
}

/** The driver takes a URL apart at its colons, also those of an IPv6 address. */
export function ipv6Address(url: string): { host?: string[]; port?: number[] } {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  return isIPv6(host) ? { host: [host], port: [Number(port) || 5432] } : {};
}

/** The gateway encrypts and logs in; the driver is given neither a password nor anything to choose a host by. */
function throughGateway(server: ExternalServer, connection: object) {
  const { host, port, database, user, options: settings, targetSessionAttrs } = server.address;
  return {
    host: [host],
    port: [port],
    database,
    user,
    pass: "",
    ssl: false,
    socket: () => gateway.connect(server),
    connection: { ...connection, ...(settings === undefined ? {} : { options: settings }) },
    ...(targetSessionAttrs === undefined ? {} : { target_session_attrs: targetSessionAttrs }),
  };
}
