/** Formats schema changes, one line each, with the terms of SQL. */
import type { SchemaChange } from "../control/bases";
import { severityOf } from "../replica";

export type SchemaChangeRow = Pick<SchemaChange, "kind" | "table" | "field" | "before" | "after">;

/** Whether SQL that was valid before may fail or mean something else after the change, now or when an alias ends. */
export function isBreaking(change: SchemaChangeRow): boolean {
  return severityOf(change) !== "additive";
}

export function describeChange({ kind, table, field, before, after }: SchemaChangeRow): string {
  const column = `${table}.${field}`;
  switch (kind) {
    case "table_added":
      return `Table ${table} was added`;
    case "table_dropped":
      return `Table ${table} was dropped`;
    case "table_renamed":
      return `Table ${before?.name} is now ${table}${inSource(before?.source_name, after?.source_name)}`;
    case "table_rebuilt":
      return `Table ${table} was rebuilt`;
    case "table_waiting":
      return `Table “${table}” is new in Airtable, and is not copied`;
    case "field_added":
      return `${column} was added${after?.type ? ` (${after.type})` : ""}`;
    case "field_dropped":
      return `${column} was dropped`;
    case "field_renamed":
      return `${table}.${before?.name} is now ${column}${inSource(before?.source_name, after?.source_name)}`;
    case "field_retyped": {
      const types =
        before?.type === after?.type
          ? [before?.source_type, after?.source_type]
          : [before?.type, after?.type];
      return `${column} was ${types[0]} and is now ${types[1]}`;
    }
  }
}

function inSource(before: string | undefined, after: string | undefined): string {
  return before === after ? "" : ` (“${before}” is now “${after}”)`;
}
