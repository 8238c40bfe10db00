/**
 * The timeline of a cluster's server, for all leases on it: a base at rest writes nothing, and would learn late that a
 * promoted standby does not have all of its rows.
 */
import type { Sql } from "postgres";
import type { Db } from "../../context";

/** Notes what the server writes now; a server that does not tell is left as it was. */
export async function recordTimeline(db: Db, clusterId: string, admin: Sql): Promise<void> {
  const timeline = await admin<{ timeline: string }[]>`
    select left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) as timeline`.then(
    ([row]) => row!.timeline,
    () => null,
  );
  if (timeline === null) return;
  await db`update clusters set timeline = ${timeline} where id = ${clusterId} and timeline is distinct from ${timeline}`;
}
