/**
 * The watchdog of all clusters, in one worker at a time: ends customers' sessions that exceed their limits, pauses
 * roles that use up transaction ids, and records which SQL users are connected.
 */
import type { Sql } from "postgres";
import { Counter } from "prom-client";
import { withTimeout } from "../../async";
import type { Context } from "../../context";
import { IDLE_TIMEOUT_SECONDS, WATCHED_BY_SERVER } from "../../postgres";
import type { Running } from "../../process";
import {
  connectionsOfUser,
  consoleRoleOf,
  type EndReason,
  endExcess,
  endPauses,
  type IdWatch,
  pauseRole,
  readActivity,
  SAFE_SEARCH_PATH,
  serverPool,
  watchIds,
} from "../../replica";
import { decryptAdminUrl, recordTimeline } from "./clusters";
import { mayWriteSql, recordSqlUsersSeen } from "./sql-user-rows";

const CONSOLE_SUFFIX = consoleRoleOf("");
/** How often all clusters are checked, regardless of the number of workers. */
const EVERY_MS = 3000;
/** A cluster that takes longer to answer is reported. Until it has, checks skip it. */
const CLUSTER_TIMEOUT_MS = 10_000;

type WatchContext = Pick<Context, "config" | "db" | "secrets" | "log" | "metrics">;

interface Customer {
  accountId: string;
  role: string;
  database: string;
  /** Its transactions may have ids. */
  isWritable: boolean;
  /** Of all roles of the database together. */
  connections: number;
  /** The name of the SQL user; null for the database's own role and the console's. */
  sqlUser: string | null;
  /** The database's own role. */
  isOwn: boolean;
}

/** A cluster with databases of customers. */
interface WatchedCluster {
  id: string;
  name: string;
  encryptedAdminUrl: string;
  customers: Customer[];
}

/** What this process keeps of a cluster from check to check. */
interface ClusterWatch {
  admin: Sql;
  ids: IdWatch;
  /** It has connected, and its server may be another one. */
  isReconnected: boolean;
}

export function startWatchdog(ctx: WatchContext): Running {
  const ended = new Counter({
    name: "basetide_watchdog_ended_total",
    help: "Sessions of customers' roles that the watchdog terminated because they exceeded a limit",
    labelNames: ["reason"],
    registers: [ctx.metrics],
  });
  const paused = new Counter({
    name: "basetide_watchdog_paused_total",
    help: "Pauses of customers' roles that consumed transaction ids too fast",
    registers: [ctx.metrics],
  });
  const watches = new Map<string, ClusterWatch>();
  /** Clusters that are being asked, by id. */
  const asking = new Map<string, Promise<void>>();
  let looking = Promise.resolve();
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** The pools end although a check may be running. */
  let isStopped = false;
  const warn = (error: unknown, facts = {}) => {
    if (!isStopped) ctx.log.warn({ ...facts, error }, "watchdog: checking a cluster failed");
  };
  function lookIn(ms: number): void {
    if (isStopped) return;
    timer = setTimeout(() => {
      looking = look().catch((error: unknown) => {
        warn(error);
        lookIn(EVERY_MS);
      });
    }, Math.ceil(ms));
  }
  lookIn(0);

  async function look(): Promise<void> {
    const { dueMs, clusters } = await takeTurn(ctx);
    for (const cluster of clusters ?? []) if (!asking.has(cluster.id)) ask(cluster);
    lookIn(dueMs);
  }

  /** No other cluster waits for one that does not answer. */
  function ask({ id, name, encryptedAdminUrl, customers }: WatchedCluster): void {
    const asked = (async () =>
      lookAt({ id, name }, decryptAdminUrl(ctx, id, encryptedAdminUrl), customers))();
    const over = () => void asking.delete(id);
    asking.set(id, asked.then(over, over));
    withTimeout(CLUSTER_TIMEOUT_MS, isSilent, asked).catch((error: unknown) =>
      warn(error, { cluster: name }),
    );
  }

  async function lookAt(
    { id, name: cluster }: { id: string; name: string },
    adminUrl: string,
    customers: Customer[],
  ): Promise<void> {
    const watch = watchOf(adminUrl);
    const { admin } = watch;
    const roles = customers.map(({ role }) => role);
    const { connected, isAnyPaused, nextId } = await readActivity(admin, roles);
    if (watch.isReconnected) {
      await recordTimeline(ctx.db, id, admin);
      watch.isReconnected = false;
    }
    const limits = new Map(customers.map((customer) => [customer.role, limitOf(customer)]));
    const named = (role: string) => {
      const sqlUser = customers.find((customer) => customer.role === role)?.sqlUser;
      return sqlUser ? { sqlUser } : {};
    };
    for (const role of isAnyPaused ? await endPauses(admin, limits) : [])
      ctx.log.info({ cluster, role }, "customer's pause ended");
    const databases = customers.map(({ database }) => database);
    const connections = customers.map((customer) => customer.connections);
    await recordSqlUsersSeen(
      ctx.db,
      connected.filter((role) => named(role).sqlUser),
    );
    const ids = customers.map(({ accountId }) => accountId);
    const accounts = { ids, connections: ctx.config.accountConnections };
    const writers = customers.filter(({ isWritable }) => isWritable).map(({ role }) => role);
    const watched = { roles, databases, connections, writers, accounts };
    for (const session of connected.length > 0 ? await endExcess(admin, watched) : []) {
      ended.inc({ reason: session.reason satisfies EndReason });
      ctx.log.warn({ cluster, ...session, ...named(session.role) }, "session of a customer terminated");
    }
    const readers = roles.filter((role) => !writers.includes(role));
    for (const role of watch.ids.isDue(nextId) ? await watch.ids.find(admin, readers) : []) {
      // The search takes seconds, in which a database may have been made writable.
      const [writer] = await ctx.db`
        select from databases as d where is_writable and role_name = ${role}
        union all
        select from sql_users as u join databases as d on d.id = u.database_id
        where u.role_name = ${role} and (d.is_writable or ${mayWriteSql(ctx.db)})`;
      if (writer) continue;
      const pause = await pauseRole(admin, role);
      if (!pause) continue;
      paused.inc();
      ctx.log.warn(
        { cluster, ...pause, ...named(role) },
        "customer paused: consumes transaction ids too fast",
      );
    }
  }

  function watchOf(adminUrl: string): ClusterWatch {
    const known = watches.get(adminUrl);
    if (known) return known;
    const options = {
      max: 1,
      idle_timeout: IDLE_TIMEOUT_SECONDS,
      onnotice: () => {},
      connection: {
        application_name: "basetide-watchdog",
        search_path: SAFE_SEARCH_PATH,
        statement_timeout: CLUSTER_TIMEOUT_MS,
        // A plan for any number of roles would compare each of them with each session.
        plan_cache_mode: "force_custom_plan",
        ...WATCHED_BY_SERVER,
      },
    };
    const { sql: admin } = serverPool(adminUrl, options, {
      use: "watchdog",
      patienceMs: CLUSTER_TIMEOUT_MS,
      onSession: () => {
        watch.isReconnected = true;
      },
    });
    const watch = { admin, ids: watchIds(), isReconnected: false };
    watches.set(adminUrl, watch);
    return watch;
  }

  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await Promise.all([...watches.values()].map(({ admin }) => admin.end({ timeout: 1 })));
      await looking;
      await Promise.all(asking.values());
    },
  };
}

/** Connections that the role may open. */
function limitOf({ connections, isOwn }: Customer): number {
  return isOwn ? connections : connectionsOfUser(connections);
}

/**
 * Takes the turn to check all clusters, if a check is due. A row decides, so no leader election is needed.
 *
 * @returns when the next check is due; the clusters, if this process has the turn
 */
async function takeTurn({ db }: WatchContext): Promise<{ dueMs: number; clusters: WatchedCluster[] | null }> {
  const [row] = await db<{ leftMs: number | null; isMine: boolean; clusters: WatchedCluster[] | null }[]>`
    with turn as (
      insert into watchdog_clock as clock (checked_at) values (now())
      on conflict ((true)) do update set checked_at = now()
        where clock.checked_at <= now() - ${EVERY_MS} * interval '1 ms'
      returning true),
    customers as (
      select cluster_id, account_id as "accountId", role_name as role, name as database, is_writable as "isWritable",
        connection_limit as connections, null as "sqlUser", true as "isOwn"
      from databases where cluster_id is not null
      union all
      select cluster_id, account_id, role_name || ${CONSOLE_SUFFIX}, name, false, connection_limit, null, false
      from databases where encrypted_console_password is not null and cluster_id is not null
      union all
      select d.cluster_id, d.account_id, u.role_name, d.name, d.is_writable or ${mayWriteSql(db)}, d.connection_limit, u.name, false
      from sql_users as u join databases as d on d.id = u.database_id where d.cluster_id is not null)
    select exists (select from turn) as "isMine",
      (select extract(epoch from checked_at - now())::float8 * 1000 + ${EVERY_MS} from watchdog_clock) as "leftMs",
      case when exists (select from turn) then (
        select json_agg(json_build_object('id', id, 'name', name, 'encryptedAdminUrl', encrypted_admin_url,
          'customers', (select json_agg(own) from customers as own where own.cluster_id = clusters.id)))
        from clusters where id in (select cluster_id from customers)) end as clusters`;
  const { leftMs, isMine, clusters } = row!;
  // Without the turn, and without time left: another process has taken it meanwhile.
  return { clusters, dueMs: !isMine && leftMs !== null && leftMs > 0 ? leftMs : EVERY_MS };
}

function isSilent(): never {
  throw new Error("the cluster does not answer");
}
