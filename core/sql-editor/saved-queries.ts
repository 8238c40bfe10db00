/** Queries that an account has saved for a base. */
import type { Context, Db } from "../context";
import type { Base } from "../control/bases";
import { BasetideError } from "../errors";
import { isId, newId } from "../ids";
import { cleanText } from "../postgres";
import { MOST_TEXT } from "./run";

export interface SavedQuery {
  id: string;
  name: string;
  sql: string;
  updatedAt: Date;
}

/** Per base. */
const MOST_SAVED = 100;
const MOST_NAME = 80;

/** By name. */
export function listSavedQueries(db: Db, base: Pick<Base, "id" | "accountId">): Promise<SavedQuery[]> {
  return db<SavedQuery[]>`
    select id, name, sql, updated_at as "updatedAt" from saved_queries
    where base_id = ${base.id} and account_id = ${base.accountId} order by lower(name), id`;
}

/**
 * Saves a query under a name; replaces the one that has this name.
 *
 * @throws BasetideError `invalid_request`; `conflict` if the base has as many as it may have
 */
export async function saveQuery(
  { db }: Pick<Context, "db">,
  base: Pick<Base, "id" | "accountId">,
  query: { name: string; sql: string },
): Promise<SavedQuery> {
  const [name, sql] = [cleanText(query.name).trim(), cleanText(query.sql).trim()];
  if (name === "" || name.length > MOST_NAME)
    throw new BasetideError("invalid_request", `Give the query a name of 1 to ${MOST_NAME} characters`);
  if (sql === "" || sql.length > MOST_TEXT)
    throw new BasetideError("invalid_request", `A saved query has 1 to ${MOST_TEXT} characters`);
  return db.begin(async (tx) => {
    // Concurrent requests are counted one after the other.
    await tx`select from bases where id = ${base.id} for no key update`;
    const [full] = await tx`
      select from saved_queries where base_id = ${base.id} and name <> ${name} having count(*) >= ${MOST_SAVED}`;
    if (full)
      throw new BasetideError("conflict", `This base has ${MOST_SAVED} saved queries. Delete one first`);
    const [saved] = await tx<[SavedQuery]>`
      insert into saved_queries (id, account_id, base_id, name, sql)
      values (${newId("saved_query")}, ${base.accountId}, ${base.id}, ${name}, ${sql})
      on conflict (base_id, name) do update set sql = excluded.sql, updated_at = now()
      returning id, name, sql, updated_at as "updatedAt"`;
    return saved;
  });
}

/** A query that is gone already is no error. */
export async function deleteSavedQuery(
  db: Db,
  base: Pick<Base, "id" | "accountId">,
  id: string,
): Promise<void> {
  if (!isId("saved_query", id)) return;
  await db`
    delete from saved_queries where id = ${id} and base_id = ${base.id} and account_id = ${base.accountId}`;
}
