/**
 * What of a base cannot be read while the rest is synced: tables, and the schema.
 *
 * The worker that holds the base saves it whenever it changes, and the next lease continues from it.
 */
import type { Db } from "../../context";
import { cutText } from "../../cut-text";
import { cleanText, jsonParameter } from "../../postgres";
import type { FailingTable, SchemaError } from "../../sync/host";

const MAX_MESSAGE_LENGTH = 1000;

/** Replaces the list of the base's failing tables. */
export async function saveFailingTables(db: Db, baseId: string, tables: FailingTable[]): Promise<void> {
  const list = tables.map((table) => ({ ...table, message: inShort(table.message) }));
  await db`update bases set failing_tables = ${jsonParameter(list)}::text::jsonb where id = ${baseId}`;
}

/** Saves why the base's schema cannot be read; null: it can be read. */
export async function saveSchemaError(db: Db, baseId: string, error: SchemaError | null): Promise<void> {
  const known = error && jsonParameter({ ...error, message: inShort(error.message) });
  await db`update bases set schema_error = ${known}::text::jsonb where id = ${baseId}`;
}

function inShort(message: string): string {
  return cutText(cleanText(message), MAX_MESSAGE_LENGTH);
}
