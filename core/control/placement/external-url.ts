/** URLs of databases that customers host: understood, or refused with what is wrong. */
import type { Config } from "../../config";
import { BasetideError } from "../../errors";
import { ExternalServer } from "../../external";
import { cleanPostgresUrl, type PostgresUrl, parsePostgresUrl } from "../../postgres-url";

export interface ConnectionTarget extends PostgresUrl {
  /** The URL as every driver reads it, without what is not for a connection; to be kept, not to be connected to. */
  text: string;
}

/** @throws BasetideError `destination_invalid` for what is no URL of a Postgres database */
export function parseConnectionTarget(text: string): ConnectionTarget {
  const parsed = parsePostgresUrl(text);
  if (typeof parsed === "string") throw invalid(parsed);
  if (parsed.user === "" || parsed.database === "")
    throw invalid("has the form postgres://user:password@host:port/database");
  // It would be a file of this machine's.
  if (parsed.rootCertificate !== undefined)
    throw invalid("names a file in sslrootcert: leave it out, and take sslmode=require");
  return { ...parsed, text: cleanPostgresUrl(text) };
}

/** The server of a URL, for what connects. @throws BasetideError `destination_invalid` */
export function externalServer(text: string, allowed: Config["privateDestinations"]): ExternalServer {
  const { text: _text, ...address } = parseConnectionTarget(text);
  return new ExternalServer({ ...address, allowed });
}

/** The URL to keep for a database that was found to take TLS: from then on it is not connected to without. */
export function withTls({ text, requestedSslMode }: ConnectionTarget): string {
  if (requestedSslMode !== undefined && requestedSslMode !== "prefer") return text;
  const url = new URL(text);
  url.searchParams.set("sslmode", "require");
  return url.href;
}

function invalid(problem: string): BasetideError {
  return new BasetideError("destination_invalid", `The destination's URL ${problem}`);
}
