/**
 * Ends sessions of customers' roles that exceed their limits. Their timeouts are defaults, which a role may change in
 * its own sessions; it cannot change these limits.
 *
 * Needs no superuser: the admin of a cluster is a member of each role that it created, so it sees their sessions and
 * may end them, and no others.
 */
import type { Sql } from "postgres";
import { SESSION_LIMITS } from "./role-limits";

/** Why a session was ended. */
export type EndReason =
  | "other_database"
  | "idle_in_transaction"
  | "statement"
  | "transaction"
  | "snapshot"
  | "transaction_id"
  | "connections"
  | "account_connections"
  | "parallel_workers"
  | "temp_files";

interface EndedSession {
  role: string;
  database: string;
  reason: EndReason;
  /** Age of the session in seconds. */
  seconds: number;
}

interface WatchOptions {
  /** Roles of the installation's databases; the cluster may have others. */
  roles: string[];
  /** The database of each of `roles`, in the same order: a role may have sessions in no other. */
  databases?: string[];
  /** Connections that all roles of that database may open together, in the same order. */
  connections?: number[];
  /** Roles of writable databases: they may use transaction ids. */
  writers: string[];
  /** The account of each of `roles`, in the same order, and the maximum number of sessions of one account's roles. */
  accounts?: { ids: string[]; connections: number };
  limits?: typeof SESSION_LIMITS;
}

/** Ends the sessions that exceed a limit, on the cluster that `admin` is connected to. */
export async function endExcess(
  admin: Sql,
  {
    roles,
    databases = [],
    connections: ofHome = [],
    writers,
    accounts,
    limits = SESSION_LIMITS,
  }: WatchOptions,
): Promise<EndedSession[]> {
  const { ids, connections } = accounts ?? { ids: roles, connections: roles.length * 10_000 };
  const temporary = await temporaryFiles(admin);
  return admin<EndedSession[]>`
    with files as (
      select * from unnest(${temporary.map(({ pid }) => pid)}::int[], ${temporary.map(({ bytes }) => bytes)}::bigint[])
        as f (pid, bytes)),
    sessions as (
      select a.*, o.home, o.home_limit, r.rolconnlimit,
        row_number() over (partition by a.usename order by a.backend_start, a.pid) as number,
        row_number() over (partition by o.home order by a.backend_start, a.pid) as home_number,
        row_number() over (partition by o.account order by a.backend_start, a.pid) as account_number,
        (select count(*) from pg_stat_activity as w where w.leader_pid = a.pid and w.pid <> a.pid) as workers,
        -- Of the sessions of the database's roles, counted from the one with the least.
        sum(coalesce(f.bytes, 0)) over (partition by coalesce(o.home, o.role) order by coalesce(f.bytes, 0), a.pid)
          as temp_bytes
      from unnest(${roles}::text[], ${databases}::text[], ${ofHome}::int[], ${ids}::text[])
          as o (role, home, home_limit, account)
        join pg_stat_activity as a on a.usename = o.role join pg_roles as r on r.oid = a.usesysid
        left join files as f on f.pid = a.pid
      where a.backend_type = 'client backend' and pg_has_role(a.usesysid, 'usage')),
    judged as materialized (
      select pid, usename, datname, backend_start, case
        when datname <> home then 'other_database'
        when state like 'idle in transaction%'
          and state_change < now() - ${limits.idleInTransactionSeconds} * interval '1 second'
          then 'idle_in_transaction'
        when state = 'active' and query_start < now() - ${limits.statementSeconds} * interval '1 second'
          then 'statement'
        when xact_start < now() - ${limits.transactionSeconds} * interval '1 second' then 'transaction'
        when age(backend_xmin) > ${limits.snapshotAge} then 'snapshot'
        when backend_xid is not null and usename <> all (${writers}::text[]) then 'transaction_id'
        when rolconnlimit >= 0 and number > rolconnlimit then 'connections'
        when home_number > home_limit then 'connections'
        when account_number > ${connections}::int then 'account_connections'
        when workers > ${limits.parallelWorkers} then 'parallel_workers'
        when temp_bytes > ${limits.tempBytes}::bigint then 'temp_files'
      end as reason
      from sessions)
    select usename as role, datname as database, reason,
      extract(epoch from now() - backend_start)::int as seconds
    from judged
    -- In this order: a planner calls a cheap function first, for all rows.
    where case when reason is null then false else pg_terminate_backend(pid) end`;
}

/** What shows in one statement whether there is anything to examine on a cluster. */
interface Activity {
  /** Roles that have a session. */
  connected: string[];
  isAnyPaused: boolean;
  /** The next transaction id that the server assigns. */
  nextId: string;
}

export async function readActivity(admin: Sql, roles: string[]): Promise<Activity> {
  const [row] = await admin<Activity[]>`
    select pg_snapshot_xmax(pg_current_snapshot())::text as "nextId",
      exists (select from pg_roles where rolconnlimit = 0 and rolname = any (${roles}::text[])) as "isAnyPaused",
      array(select distinct usename::text from pg_stat_activity
        where usename = any (${roles}::text[]) and backend_type = 'client backend') as connected`;
  return row!;
}

/** Returns bytes of temporary files by session; empty if the admin may not see them. */
async function temporaryFiles(admin: Sql): Promise<{ pid: number; bytes: string }[]> {
  const [may] = await admin<{ look: boolean }[]>`
    select has_function_privilege('pg_ls_tmpdir()', 'execute') as look`;
  if (!may?.look) return [];
  return admin<{ pid: number; bytes: string }[]>`
    select substring(name from '^pgsql_tmp(\\d+)\\.')::int as pid, sum(size)::text as bytes
    from pg_ls_tmpdir() where name ~ '^pgsql_tmp\\d+\\.' group by 1`;
}
