/**
 * What of a base cannot be read while the rest is synced: tables, and the schema.
 *
 * The worker that holds the base saves it whenever it changes, and the next lease continues from it.
 */
import type { Db } from "../../context";
import type { ErrorCode } from "../../errors";
import { cleanText, jsonParameter } from "../../postgres";

/** A table that cannot be read; as the management API shows it. Times are ISO 8601. */
export interface FailingTable {
  /** The source's id of the table. */
  table_id: string;
  /** The source's name of the table. */
  name: string;
  code: ErrorCode;
  /** Names the table. */
  message: string;
  since: string;
  next_try_at: string;
}

/** Why the schema cannot be read; changes of it are not noticed meanwhile. */
export interface SchemaError {
  code: ErrorCode;
  message: string;
  /** ISO 8601. */
  since: string;
}

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
  return cleanText(message).slice(0, MAX_MESSAGE_LENGTH);
}
