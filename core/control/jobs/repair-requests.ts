/** Requests of syncs to read records again: the proxies' repairs do it. */
import type { Db } from "../../context";

/** Repairs of one base that are kept; past them its next sync brings what is missing. */
const MAX_PER_BASE = 10_000;

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
      set noted_at = excluded.noted_at, attempts = 0, due_at = greatest(repairs.due_at, excluded.due_at)`;
}
