/**
 * Check results about a server and the connection to it, for customers' databases, clusters and the control plane.
 */
import { type CheckResult, isProblem, ok, problem, warning } from "../../check-result";
import { BasetideError } from "../../errors";
import type { AddressKind } from "../../net";
import type { ServerReport } from "../../postgres";
import { knownTransactionPooler, sessionRemedy, TransactionPooled } from "../../postgres";
import type { PostgresUrl } from "../../postgres-url";

/** One result of checking a database. Its remedy is SQL to run there, or a change to the URL. */
export type DatabaseCheck = CheckResult<
  "address" | "connection" | "pooler" | "encryption" | "latency" | "rights" | "schema"
>;

/** The oldest version on which the objects of a replica have run. */
export const FIRST_REPLICA_VERSION = 14;
/** Versions that the tests run on. */
const TESTED_MAJOR_VERSIONS = { first: 15, last: 18 };
/** A write waits for several round trips, and a sync for many. */
const SLOW_ROUND_TRIP_MS = 100;

/** The server, and the options of its URL. */
interface Reached {
  url: Pick<PostgresUrl, "host" | "port" | "sslMode" | "requestedSslMode" | "ignored">;
  /** The kind of network that its addresses are in. */
  kind: AddressKind;
  /** The operator has chosen it, so the connection may use the operator's own network. */
  isOwn: boolean;
  /** Earlier versions are not supported. */
  firstMajorVersion: number;
}

/** @throws BasetideError `destination_invalid` with the first problem and its remedy */
export function requireUsable(checks: DatabaseCheck[]): void {
  const found = checks.find(isProblem);
  if (!found) return;
  const remedy = found.remedy === undefined ? "" : `: ${found.remedy}`;
  throw new BasetideError("destination_invalid", `${found.message}${remedy}`);
}

/** Checks the connection itself. */
export function checkServer(report: ServerReport, reached: Reached): DatabaseCheck[] {
  return [
    checkVersion(report, reached),
    checkPooler(report),
    checkEncryption(report, reached),
    checkLatency(report),
  ];
}

/** One line about the server that was reached. */
export function describeServer({
  version,
  platform,
  pooling,
  link,
  connectMs,
  roundTripMs,
}: ServerReport): string {
  return [
    `PostgreSQL ${version}${platform === undefined ? "" : ` (${platform})`}`,
    pooling === "none" ? "direct" : "through a pooler",
    link.tls ?? "not encrypted",
    ...(link.family === undefined ? [] : [link.family]),
    `${inMs(connectMs)} to connect`,
    `${inMs(roundTripMs)} a round trip`,
  ].join(", ");
}

function checkVersion(
  { version, majorVersion, platform, role }: ServerReport,
  reached: Reached,
): DatabaseCheck {
  const { first, last } = TESTED_MAJOR_VERSIONS;
  const on = platform === undefined ? "" : ` (${platform})`;
  const message = `PostgreSQL ${version}${on} accepts ${role}`;
  const unused = reached.url.ignored;
  if (majorVersion < reached.firstMajorVersion)
    return problem("connection", `PostgreSQL ${version}${on} is too old`, `Upgrade it to PostgreSQL ${last}`);
  if (majorVersion < first || majorVersion > last)
    return warning("connection", message, `Versions ${first} to ${last} are tested`);
  if (unused.length > 0) {
    const remedy = `Parameters that were ignored and removed from the URL: ${unused.join(", ")}`;
    return warning("connection", message, remedy);
  }
  return ok("connection", message);
}

/** The check result for a server that is unusable because of its pooler; undefined if `error` has another cause. */
export function poolerProblem(
  error: unknown,
  address: { host: string; port: number },
): DatabaseCheck | undefined {
  if (!(error instanceof TransactionPooled)) return undefined;
  const name = knownTransactionPooler(address) ?? "A pooler";
  const message = `${name} in transaction mode is in front of the server: it does not preserve session locks and settings`;
  return problem("pooler", message, sessionRemedy(address));
}

function checkPooler({ pooling }: ServerReport): DatabaseCheck {
  if (pooling === "full") {
    const message = "The pooler in front of the server allows only one connection";
    const remedy = "Raise its pool size (default_pool_size in PgBouncer) to 20 or more";
    return warning("pooler", message, remedy);
  }
  return ok(
    "pooler",
    pooling === "none" ? "Connected without a pooler" : "Connected through a pooler that preserves sessions",
  );
}

/**
 * On the open internet anyone on the path could read every row, and perhaps the password; the URL must allow that
 * explicitly.
 */
function checkEncryption({ link, seesTls }: ServerReport, { url, kind, isOwn }: Reached): DatabaseCheck {
  if (link.tls !== undefined) {
    const isVerified = url.sslMode.startsWith("verify-");
    const further = seesTls ? "" : "; TLS ends at a proxy in front of the server";
    const checked = isVerified
      ? ", and the server's certificate is checked"
      : "; with sslmode=verify-full, the server's certificate is also checked";
    return ok("encryption", `Encrypted with ${link.tls}${further}${checked}`);
  }
  const message = "The connection is not encrypted";
  if (isOwn && kind !== "public") return ok("encryption", message);
  const isChosen = isOwn || kind !== "public" || url.requestedSslMode === "disable";
  const remedy =
    url.sslMode === "prefer"
      ? "Turn on TLS on the server (ssl = on) or on the proxy in front of it: neither offers it now"
      : "Add ?sslmode=require to the URL";
  return (isChosen ? warning : problem)("encryption", message, remedy);
}

function checkLatency({ connectMs, roundTripMs }: ServerReport): DatabaseCheck {
  const message = `${inMs(connectMs)} to connect, ${inMs(roundTripMs)} for a round trip`;
  if (roundTripMs <= SLOW_ROUND_TRIP_MS) return ok("latency", message);
  return warning("latency", message, "Every statement waits this long. Choose a database near the service");
}

function inMs(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}
