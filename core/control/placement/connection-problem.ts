/** Describes why a connection to a database failed, and what to check. */
import { asBasetideError, isBasetideError } from "../../errors";
import { CERTIFICATE_CODES, ipv6OnlyProblem } from "../../postgres";
import { quoteIdent } from "../../replica";
import { parseConnectionTarget } from "./external-url";

/** Errors of a missing route to the server; Bun reports a missing route as ECONNREFUSED, too. */
const NO_ROUTE = new Set(["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "CONNECT_TIMEOUT"]);

/** @param url a valid URL, unless `error` says that it is invalid */
export async function connectionProblem(error: unknown, url: string): Promise<string> {
  if (isBasetideError(error)) return error.message;
  const place = parseConnectionTarget(url);
  const { host, port, user, database } = place;
  const code = String((error as { code?: unknown }).code ?? "");
  const noRoute = NO_ROUTE.has(code) ? await ipv6OnlyProblem(host) : undefined;
  if (noRoute !== undefined) return noRoute;
  const unreachable = `The database at ${host} cannot be reached:`;
  const known: Record<string, string> = {
    ECONNREFUSED: `${unreachable} no server listens on port ${port}`,
    CONNECT_TIMEOUT: `${unreachable} port ${port} does not answer. Check whether a firewall blocks Basetide`,
    CONNECTION_CLOSED: `${unreachable} the connection was closed immediately. The server may require TLS (?sslmode=require), or a device in between may not support the Postgres protocol`,
    ENETUNREACH: `${unreachable} there is no route to it`,
    EHOSTUNREACH: `${unreachable} there is no route to it`,
    ENOTFOUND: `${unreachable} the host name does not exist`,
    ...Object.fromEntries(CERTIFICATE_CODES.map((known) => [known, untrusted(host, error)])),
    "25006": `The server at ${host} is a read-only standby. Use the address of its primary`,
    "28P01": `The server rejected the password of ${user}`,
    "28000": `The server rejected ${user} from Basetide's address (pg_hba.conf), or requires TLS (?sslmode=require)`,
    "3D000": `There is no database ${database} on that server`,
    "42501": denial(error, `grant connect on database ${quoteIdent(database)} to ${quoteIdent(user)}`),
    "53300": "The server has no free connection",
  };
  return known[code] ?? `The database at ${host} cannot be used: ${asBasetideError(error).message}`;
}

/**
 * Names the missing right: to connect, if the server refused the login, or the one that the server's message names.
 */
function denial(error: unknown, grantConnect: string): string {
  const { severity, message } = error as { severity?: string; message?: string };
  if (severity === "ERROR") return `The role lacks a privilege that Basetide needs: ${message}`;
  return `The role is not allowed to connect to the database. Run: ${grantConnect}`;
}

function untrusted(host: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `The certificate of the server at ${host} cannot be trusted: ${reason}. With sslmode=require, it is not checked`;
}
