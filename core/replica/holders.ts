/** Names the sessions that hold a table that is about to change, for the people who wait for the change. */
import { BasetideError } from "../errors";
import { onReplica } from "./connection";
import type { Replica } from "./replica";

/** More names would not help the reader. */
const MOST = 3;

interface Holder {
  pid: number;
  role: string;
  /** Null if the server does not show it to our role. */
  application: string | null;
  minutes: number | null;
}

/**
 * Returns the same error, with the sessions that hold the table.
 *
 * @param table its SQL name
 * @param error `replica_busy`
 */
export async function withHolders(
  { sql, schema }: Replica,
  table: string,
  error: BasetideError,
): Promise<BasetideError> {
  const holders = await onReplica(
    () => sql<Holder[]>`
      select distinct s.pid, coalesce(s.usename, s.backend_type) as role, nullif(s.application_name, '') as application,
        floor(extract(epoch from now() - s.xact_start) / 60)::int as minutes
      from pg_locks as l join pg_stat_activity as s on s.pid = l.pid
        join pg_class as c on c.oid = l.relation
        join pg_database as d on d.oid = l.database and d.datname = current_database()
      where l.granted and l.pid <> pg_backend_pid() and c.relname = ${table} and c.relnamespace = to_regnamespace(${schema})
      order by minutes desc nulls last limit ${MOST}`,
  ).catch(() => []);
  if (holders.length === 0) return error;
  const who = holders.map(described).join("; ");
  const text = `The table ${table} is locked by ${who}. Basetide changes it when these sessions end. Other tables continue to sync.`;
  return new BasetideError("replica_busy", text, { cause: error, details: error.details });
}

function described({ pid, role, application, minutes }: Holder): string {
  const since = minutes === null || minutes < 1 ? [] : [`for ${minutes} min`];
  return `${role} (${[...(application ? [application] : []), `pid ${pid}`, ...since].join(", ")})`;
}
