/**
 * TLS of database servers: whether a server accepts it, for the driver that cannot fall back to no TLS on the same
 * connection, and its verification by the URL's `sslmode`, the same for every driver and the gateway.
 */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import tls from "node:tls";
import type { PostgresUrl } from "../postgres-url";

import { liveSocket } from "./live-socket";

export const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
export const TLS_OFFERED = 0x53;
export const TLS_REFUSED = 0x4e;
const TIMEOUT_MS = 5000;

/** @throws the operating system's error if the server cannot be reached */
export async function offersTls({ host, port }: Pick<PostgresUrl, "host" | "port">): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const socket = liveSocket();
  const timer = setTimeout(() => socket.destroy(timedOut(host)), TIMEOUT_MS);
  socket
    .once("data", (answer: Buffer) => resolve(answer[0] === TLS_OFFERED))
    .once("error", reject)
    .once("close", () => reject(closed(host)));
  socket.connect(port, host, () => socket.write(SSL_REQUEST));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.on("error", () => {});
    socket.destroy();
  }
}

function timedOut(host: string): Error {
  return Object.assign(new Error(`${host} does not answer`), { code: "CONNECT_TIMEOUT" });
}

function closed(host: string): Error {
  return Object.assign(new Error(`${host} closed the connection`), { code: "CONNECTION_CLOSED" });
}

type Checked = Pick<PostgresUrl, "host" | "sslMode" | "rootCertificate">;

/** Returns options for `tls.connect`; the caller adds the socket. @throws if the file of authorities cannot be read */
export function tlsOptions({ host, sslMode, rootCertificate }: Checked): tls.ConnectionOptions {
  return {
    // RFC 6066 allows no IP address here.
    ...(isIP(host) ? {} : { servername: host }),
    ...(rootCertificate === undefined ? {} : { ca: readFileSync(rootCertificate, "utf8") }),
    rejectUnauthorized: sslMode === "verify-ca" || sslMode === "verify-full",
    // Without a name TLS would compare the certificate with `localhost`.
    checkServerIdentity: (_name, certificate) =>
      sslMode === "verify-full" ? tls.checkServerIdentity(host, certificate) : undefined,
  };
}
