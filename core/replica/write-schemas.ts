/** The schemas of SQL writes of a replica: the customers' views, and what belongs to their triggers. */
import { quoteIdent } from "./naming";

/** The schema of the extension dblink, in each hosted database (`sql/server/dblink.sql`). */
export const DBLINK_SCHEMA = "basetide_dblink";

/** `public` → `"write"` and `"write_own"`; `s` → `"s_write"` and `"s_write_own"`. */
export function writeSchemasOf(schema: string): { write: string; own: string } {
  const name = schema === "public" ? "write" : `${schema}_write`;
  return { write: quoteIdent(name), own: quoteIdent(`${name}_own`) };
}
