/**
 * The watchdog of all clusters, in one worker at a time: ends customers' sessions that exceed their limits, pauses
 * roles that use up transaction ids, and records which SQL users are connected.
 */
import type { Sql } from "postgres";
import { Counter } from "prom-client";
import { withTimeout } from "../../async";
import type { Context } from "../../context";
import { WATCHED_BY_SERVER } from "../../postgres";
import type { Running } from "../../process";
import {
  connectedRoles,
  connectionsOfUser,
  consoleRoleOf,
  type EndReason,
  endExcess,
  endPauses,
  type IdWatch,
  pauseRole,
  SAFE_SEARCH_PATH,
  serverPool,
  watchIds,
} from "../../replica";
import { clusterAdminUrl, listClusters, recordTimeline } from "./clusters";
import { recordSqlUsersSeen } from "./sql-user-rows";

const CONSOLE_SUFFIX = consoleRoleOf("");
/** How often all clusters are checked, regardless of the number of workers. */
const EVERY_MS = 3000;
/** How often a worker tries to run the check, which is due only EVERY_MS after the last one. */
const ASK_MS = 1000;
/** Longest time that a cluster may take to answer; the next check skips a cluster that is still being asked. */
const CLUSTER_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_SECONDS = 30;

type WatchContext = Pick<Context, "config" | "db" | "secrets" | "log" | "metrics">;

interface Customer {
  clusterId: string;
  accountId: string;
  role: string;
  database: string;
  isWritable: boolean;
  /** Of all roles of the database together. */
  connections: number;
  /** The name of the SQL user; null for the database's own role and the console's. */
  sqlUser: string | null;
  /** The database's own role. */
  isOwn: boolean;
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
  const pools = new Map<string, Sql>();
  const idWatches = new Map<string, IdWatch>();
  let looking: Promise<void> | undefined;
  /** The pools end although a check may be running. */
  let isStopped = false;
  const warn = (error: unknown, facts = {}) => {
    if (!isStopped) ctx.log.warn({ ...facts, error }, "watchdog: checking a cluster failed");
  };
  const timer = setInterval(() => {
    looking ??= look()
      .catch(warn)
      .finally(() => {
        looking = undefined;
      });
  }, ASK_MS);

  async function look(): Promise<void> {
    if (!(await takeTurn(ctx))) return;
    const customers = await ctx.db<Customer[]>`
      select cluster_id as "clusterId", account_id as "accountId", role_name as role, name as database,
        is_writable as "isWritable", connection_limit as connections, null as "sqlUser", true as "isOwn"
      from databases where cluster_id is not null
      union all
      select cluster_id, account_id, role_name || ${CONSOLE_SUFFIX}, name, false, connection_limit, null, false
      from databases where encrypted_console_password is not null
      union all
      select d.cluster_id, d.account_id, u.role_name, d.name, d.is_writable, d.connection_limit, u.name, false
      from sql_users as u join databases as d on d.id = u.database_id where d.cluster_id is not null`;
    await Promise.all(
      (await listClusters(ctx.db)).map(async ({ id, name }) => {
        try {
          const own = customers.filter(({ clusterId }) => clusterId === id);
          if (own.length === 0) return;
          const looking = lookAt({ id, name }, await clusterAdminUrl(ctx, id), own);
          await withTimeout(CLUSTER_TIMEOUT_MS, isSilent, looking);
        } catch (error) {
          warn(error, { cluster: name });
        }
      }),
    );
  }

  async function lookAt(
    { id, name: cluster }: { id: string; name: string },
    adminUrl: string,
    customers: Customer[],
  ): Promise<void> {
    const admin = poolOf(adminUrl);
    await recordTimeline(ctx.db, id, admin);
    const limits = new Map(customers.map((customer) => [customer.role, limitOf(customer)]));
    const named = (role: string) => {
      const sqlUser = customers.find((customer) => customer.role === role)?.sqlUser;
      return sqlUser ? { sqlUser } : {};
    };
    for (const role of await endPauses(admin, limits))
      ctx.log.info({ cluster, role }, "customer's pause ended");
    const roles = customers.map(({ role }) => role);
    const databases = customers.map(({ database }) => database);
    const connections = customers.map((customer) => customer.connections);
    const users = customers.filter(({ sqlUser }) => sqlUser !== null).map(({ role }) => role);
    if (users.length > 0) await recordSqlUsersSeen(ctx.db, await connectedRoles(admin, users));
    const ids = customers.map(({ accountId }) => accountId);
    const accounts = { ids, connections: ctx.config.accountConnections };
    const writers = customers.filter(({ isWritable }) => isWritable).map(({ role }) => role);
    for (const session of await endExcess(admin, { roles, databases, connections, writers, accounts })) {
      ended.inc({ reason: session.reason satisfies EndReason });
      ctx.log.warn({ cluster, ...session, ...named(session.role) }, "session of a customer terminated");
    }
    const readers = roles.filter((role) => !writers.includes(role));
    const idWatch = idWatches.get(adminUrl) ?? watchIds();
    idWatches.set(adminUrl, idWatch);
    for (const role of await idWatch.find(admin, readers)) {
      // The search takes seconds, in which a database may have been made writable.
      const [writer] = await ctx.db`
        select from databases as d where is_writable and (role_name = ${role}
          or exists (select from sql_users as u where u.database_id = d.id and u.role_name = ${role}))`;
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

  function poolOf(adminUrl: string): Sql {
    const known = pools.get(adminUrl);
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
    const { sql: pool } = serverPool(adminUrl, options, { use: "watchdog", patienceMs: CLUSTER_TIMEOUT_MS });
    pools.set(adminUrl, pool);
    return pool;
  }

  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await Promise.all([...pools.values()].map((pool) => pool.end({ timeout: 1 })));
      await looking;
    },
  };
}

/** Connections that the role may open. */
function limitOf({ connections, isOwn }: Customer): number {
  return isOwn ? connections : connectionsOfUser(connections);
}

/** Whether a check is due and this process runs it. A row decides, so no leader election is needed. */
async function takeTurn({ db }: WatchContext): Promise<boolean> {
  const [taken] = await db`
    update watchdog_clock set checked_at = now()
    where checked_at < now() - ${EVERY_MS} * interval '1 ms' returning checked_at`;
  return taken !== undefined;
}

function isSilent(): never {
  throw new Error("the cluster does not answer");
}
