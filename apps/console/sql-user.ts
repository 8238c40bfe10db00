/** Finds the SQL user that an address names, with its database and base. */

import type { Db } from "../../core/context";
import { type Base, getBase } from "../../core/control/bases";
import { type Database, getDatabase, getSqlUser, type SqlUser } from "../../core/control/placement";

/** @throws BasetideError `not_found`, also if it belongs to another account */
export async function findSqlUser(
  db: Db,
  accountId: string,
  { id, user }: { id: string; user: string },
): Promise<{ base: Base; database: Database; user: SqlUser }> {
  const base = await getBase(db, id, accountId);
  const database = await getDatabase(db, base.database.id);
  return { base, database, user: await getSqlUser(db, database.id, user) };
}
