/** TLS verification of a database server by the URL's `sslmode`: the same for every driver and the gateway. */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import tls from "node:tls";
import type { PostgresUrl } from "../postgres-url";

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
