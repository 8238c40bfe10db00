/** Parses URLs of databases that customers host, or rejects them with the reason. */
import type { Config } from "../../config";
import { BasetideError } from "../../errors";
import { ExternalServer } from "../../external";
import { cleanPostgresUrl, type PostgresUrl, parsePostgresUrl } from "../../postgres-url";

export interface ConnectionTarget extends PostgresUrl {
  /** The normalized URL without options that are not for the connection; for storage only, not for connecting. */
  text: string;
}

/** @throws BasetideError `destination_invalid` for anything but a URL of a Postgres database */
export function parseConnectionTarget(text: string): ConnectionTarget {
  const parsed = parsePostgresUrl(text);
  if (typeof parsed === "string") throw invalid(parsed);
  if (parsed.user === "" || parsed.database === "")
    throw invalid("must have the form postgres://user:password@host:port/database");
  // It would be a file on this machine.
  if (parsed.rootCertificate !== undefined)
    throw invalid("must not name a file in sslrootcert. Remove that parameter and use sslmode=require");
  return { ...parsed, text: cleanPostgresUrl(text) };
}

/** Returns the server of a URL, to connect to it. @throws BasetideError `destination_invalid` */
export function externalServer(text: string, allowed: Config["privateDestinations"]): ExternalServer {
  const { text: _text, ...address } = parseConnectionTarget(text);
  return new ExternalServer({ ...address, allowed });
}

/** Returns the URL to store for a database that supports TLS: from then on, connections without TLS are refused. */
export function withTls({ text, requestedSslMode }: ConnectionTarget): string {
  if (requestedSslMode !== undefined && requestedSslMode !== "prefer") return text;
  const url = new URL(text);
  url.searchParams.set("sslmode", "require");
  return url.href;
}

function invalid(problem: string): BasetideError {
  return new BasetideError("destination_invalid", `The destination's URL ${problem}`);
}
