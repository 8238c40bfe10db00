/** Divides the outboxes of SQL writes among the proxies: each is read by one of them. */
import type { Db } from "../../context";
import { SILENCE } from "./processes";

/** A base whose replica has an outbox. */
export interface OutboxBase {
  id: string;
  databaseId: string;
  schema: string;
  /** Its writes are queued. Otherwise the outbox is read until nothing in it waits. */
  isQueued: boolean;
}

/**
 * Returns the bases whose outboxes this proxy reads. While proxies start and end, one may have two readers for a few
 * seconds, which does no harm, or none.
 *
 * @param proxyId under which it reports itself
 */
export function outboxesOf(db: Db, proxyId: string): Promise<OutboxBase[]> {
  return db<OutboxBase[]>`
    with proxies as (
      select id from processes where role = 'proxy' and seen_at > now() - ${SILENCE}::interval
      union select ${proxyId})
    select b.id, b.database_id as "databaseId", b.schema_name as schema, b.sql_writes and b.sql_writes_queued as "isQueued"
    from bases as b
    where b.has_outbox and b.state not in ('moving', 'deleting')
      and ${proxyId} = (select p.id from proxies as p order by md5(p.id || b.id) limit 1)`;
}

/** Records that nothing waits in the outbox of a base whose writes are no longer queued. */
export async function releaseOutbox(db: Db, baseId: string): Promise<void> {
  await db`update bases set has_outbox = false where id = ${baseId} and not (sql_writes and sql_writes_queued)`;
}
