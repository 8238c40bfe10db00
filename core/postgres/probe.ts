/** Connects to a server as the service will, and reports what it finds: the provider, the route, and the latency. */
import { isIPv6 } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Sql } from "postgres";
import { LINK_ADDRESS, LINK_TLS, type ServerUrl } from "../external";
import { type NewConnection, ownServer, type SessionOptions } from "./client";
import { TransactionPooled } from "./errors";
import { platformOf, TRACES, type Traces } from "./platform";
import { cutAt, findPooling, type OpenPool, type Pooling } from "./pooling";
import { refuseKnownPooler } from "./session-urls";

/** The fastest counts: delays of a busy machine are not the network's. */
const ROUND_TRIPS = 3;

export interface ServerReport {
  version: string;
  majorVersion: number;
  /** Undefined for an unknown provider. */
  platform: string | undefined;
  /** `current_user`: behind a pooler the URL may name another user. */
  role: string;
  pooling: Exclude<Pooling, "transaction">;
  link: ConnectionLink;
  /** As the server sees it: if a proxy terminates our connection, the server sees another one. */
  seesTls: boolean;
  /** From the lookup of the name until a statement can be sent. */
  connectMs: number;
  roundTripMs: number;
}

/**
 * Runs `work` on a connection of `connect`, which creates the pool that the service itself uses there.
 *
 * @param options.signal closes the connections
 * @param options.open creates the pool that looks for a pooler, which applies no settings
 * @throws TransactionPooled, errors of the connection or of `work`
 */
export async function probe<T>(
  url: ServerUrl,
  connect: (url: ServerUrl, options: SessionOptions) => Sql,
  work: (sql: Sql, report: ServerReport) => Promise<T>,
  { signal, open }: { signal?: AbortSignal; open?: OpenPool } = {},
): Promise<T> {
  // Applies no settings: if sessions are shared, settings would remain on a connection that others use.
  const address = typeof url === "string" ? ownServer(url) : url.address;
  refuseKnownPooler(address);
  const pooling = await findPooling(url, { signal, open });
  if (pooling === "transaction") throw new TransactionPooled();
  let link: ConnectionLink | undefined;
  let connectMs = 0;
  const startedAt = performance.now();
  const sql = connect(url, {
    onSession: (_session, connection) => {
      if (link !== undefined) return;
      link = linkOf(connection);
      connectMs = performance.now() - startedAt;
    },
  });
  using _cut = cutAt(signal, sql);
  try {
    const facts = await readFacts(sql);
    const report = {
      version: facts.version,
      majorVersion: Math.floor(facts.version_number / 10_000),
      platform: platformOf(facts, address.host),
      role: facts.role,
      pooling,
      link: link!,
      seesTls: facts.seesTls,
      connectMs,
      roundTripMs: await measureRoundTrip(sql),
    };
    return await work(sql, report);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function readFacts(sql: Sql) {
  const [facts] = await sql<
    (Traces & { version: string; version_number: number; role: string; seesTls: boolean })[]
  >`
    select current_setting('server_version') as version, current_setting('server_version_num')::int as version_number,
      current_user::text as role,
      coalesce((select ssl from pg_catalog.pg_stat_ssl where pid = pg_backend_pid()), false) as "seesTls",
      array(select rolname::text from pg_catalog.pg_roles where rolname = any(${TRACES.roles})) as roles,
      array(select distinct split_part(name, '.', 1) from pg_catalog.pg_settings where name like '%.%') as prefixes,
      exists(select from pg_catalog.pg_proc where proname = 'aurora_version') as "hasAurora"`;
  return facts!;
}

async function measureRoundTrip(sql: Sql): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < ROUND_TRIPS; count++) {
    const startedAt = performance.now();
    await sql.unsafe("select 1").simple();
    times.push(performance.now() - startedAt);
  }
  return Math.min(...times);
}

/** How a connection reaches its server, seen from our end: the server may see a proxy's connection. */
interface ConnectionLink {
  /** The TLS version, such as `TLSv1.3`; undefined if the connection is not encrypted. */
  tls: string | undefined;
  /** The address of the server, or of a proxy in front of it. */
  address: string | undefined;
  family: "IPv4" | "IPv6" | undefined;
}

function linkOf({ socket, parameters }: NewConnection): ConnectionLink {
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
