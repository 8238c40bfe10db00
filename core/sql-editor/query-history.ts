/** The queries that a person ran on a base, for that person alone: each text once, the latest a hundred. */
import type { Db } from "../context";
import type { CurrentUser } from "../control/accounts";
import type { Base } from "../control/bases";
import { isId, newId } from "../ids";

export interface PastQuery {
  id: string;
  /** The beginning. */
  sql: string;
  ranAt: Date;
  ms: number;
  /** Null: it failed. */
  rows: number | null;
}

type Owner = Pick<CurrentUser, "userId">;
type OwnBase = Pick<Base, "id" | "accountId">;

/** Per person and base. */
const MOST_PAST = 100;
const MOST_EXCERPT = 160;

/** The latest first. */
export function listHistory(db: Db, base: OwnBase, { userId }: Owner): Promise<PastQuery[]> {
  return db<PastQuery[]>`
    select id, left(sql, ${MOST_EXCERPT}) as sql, ran_at as "ranAt", ms, rows from query_history
    where base_id = ${base.id} and user_id = ${userId} order by ran_at desc, id`;
}

/** The text of a query, if the person ran it. */
export async function pastQuery(
  db: Db,
  base: OwnBase,
  { userId }: Owner,
  id: string,
): Promise<string | undefined> {
  if (!isId("past_query", id)) return undefined;
  const [row] = await db<{ sql: string }[]>`
    select sql from query_history where id = ${id} and base_id = ${base.id} and user_id = ${userId}`;
  return row?.sql;
}

/**
 * Replaces an earlier run of the same text, and the oldest queries beyond the limit. Records nothing of someone who is
 * no longer a member, nor of a base that has been deleted meanwhile.
 */
export async function recordQuery(
  db: Db,
  base: OwnBase,
  { userId }: Owner,
  { sql, ms, rows }: Pick<PastQuery, "sql" | "ms" | "rows">,
): Promise<void> {
  await db`
    with replaced as (
      delete from query_history where base_id = ${base.id} and user_id = ${userId} and (sql = ${sql} or id in (
        select id from query_history where base_id = ${base.id} and user_id = ${userId}
        order by ran_at desc, id offset ${MOST_PAST - 1})))
    insert into query_history (id, account_id, user_id, base_id, sql, ms, rows)
    select ${newId("past_query")}, m.account_id, m.user_id, b.id, ${sql}::text, ${ms}::integer, ${rows}::integer
    from account_members as m join bases as b using (account_id)
    where m.user_id = ${userId} and b.id = ${base.id} and b.account_id = ${base.accountId}`;
}

export async function clearHistory(db: Db, base: OwnBase, { userId }: Owner): Promise<void> {
  await db`delete from query_history where base_id = ${base.id} and user_id = ${userId}`;
}
