/** Requests about a base: that a sync finds unreported writes, and that proxies read records again. */
import type { Db } from "../../context";

/** Repairs that are stored per base; its next sync covers any further ones. */
const MAX_PER_BASE = 10_000;

/** Requests that proxies read these records again. */
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

/** Requests that a sync finds writes of clients for which the affected records are unknown. */
export async function requestCatchUp(db: Db, baseId: string): Promise<void> {
  await db`update bases set catch_up_requested_at = now() where id = ${baseId}`;
}

/** Completes the requests until `requestedAt`. */
export async function settleCatchUp(db: Db, baseId: string, requestedAt: Date): Promise<void> {
  // A Date has no microseconds.
  await db`
    update bases set catch_up_requested_at = null
    where id = ${baseId} and date_trunc('milliseconds', catch_up_requested_at) <= ${requestedAt}`;
}
