/**
 * What of a base cannot be read while the rest is synced: tables, and the schema.
 *
 * The worker that holds the base saves it whenever it changes, and the next lease continues from it.
 */
import type { Db } from "../../context";
import { jsonParameter, storedMessage } from "../../postgres";
import type { FailingTable, SchemaError } from "../../sync/host";

/** Replaces the list of the base's failing tables. */
export async function saveFailingTables(db: Db, baseId: string, tables: FailingTable[]): Promise<void> {
  const list = tables.map((table) => ({ ...table, message: storedMessage(table.message) }));
  await db`update bases set failing_tables = ${jsonParameter(list)}::text::jsonb where id = ${baseId}`;
}

/** Saves why the base's schema cannot be read; null: it can be read. */
export async function saveSchemaError(db: Db, baseId: string, error: SchemaError | null): Promise<void> {
  const known = error && jsonParameter({ ...error, message: storedMessage(error.message) });
  await db`update bases set schema_error = ${known}::text::jsonb where id = ${baseId}`;
}
