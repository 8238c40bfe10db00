/** What is asked of syncs and proxies about a base: to find what was written without a trace, and to read records again. */
import type { Db } from "../../context";

/** Repairs of one base that are kept; past them its next sync brings what is missing. */
const MAX_PER_BASE = 10_000;

/** Asks the proxies' repairs to read records again. */
export async function requestRepairs(
  db: Db,
  baseId: string,
  records: { tableId: string; recordId: string }[],
): Promise<void> {
  await db`
    insert into repairs (base_id, table_ref, record_id)
    select b.id, r.table_id, r.record_id
    from (select id from bases where id = ${baseId} and state <> 'deleting' for key share) as b,
      unnest(${records.map(({ tableId }) => tableId)}::text[], ${records.map(({ recordId }) => recordId)}::text[])
        as r (table_id, record_id)
    where (select count(*) from repairs as known where known.base_id = b.id) < ${MAX_PER_BASE}
    on conflict (base_id, table_ref, record_id) do update
      set recorded_at = excluded.recorded_at, attempts = 0, due_at = greatest(repairs.due_at, excluded.due_at)`;
}

/** Asks a sync to find what clients have written where nothing says which records that was. */
export async function requestCatchUp(db: Db, baseId: string): Promise<void> {
  await db`update bases set catch_up_requested_at = now() where id = ${baseId}`;
}

/** What was requested until then has been found. */
export async function settleCatchUp(db: Db, baseId: string, requestedAt: Date): Promise<void> {
  // A Date has no microseconds.
  await db`
    update bases set catch_up_requested_at = null
    where id = ${baseId} and date_trunc('milliseconds', catch_up_requested_at) <= ${requestedAt}`;
}
