/** The schemas of SQL writes of a replica: the customers' views, and what belongs to their triggers. */
import { quoteIdent } from "./naming";
import type { TableSpec } from "./spec";

/** The schema of the extension dblink, in each hosted database (`sql/server/dblink.sql`). */
export const DBLINK_SCHEMA = "basetide_dblink";

/** Returns the name of the view that SQL writes to; undefined if there is none (`wanted_write_views` in write-views.sql). */
export function writeViewOf({ name, partial }: Pick<TableSpec, "name" | "partial">): string | undefined {
  if (partial === "records") return undefined;
  return name === "log" ? "log_" : name;
}

/** `public` → `"write"` and `"write_own"`; `s` → `"s_write"` and `"s_write_own"`. */
export function writeSchemasOf(schema: string): { write: string; own: string } {
  const name = schema === "public" ? "write" : `${schema}_write`;
  return { write: quoteIdent(name), own: quoteIdent(`${name}_own`) };
}
