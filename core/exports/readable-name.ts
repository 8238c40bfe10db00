/** Names in SQL that people read and copy: quoted only where Postgres requires it. */
import { quoteIdent } from "../replica";

const PLAIN = /^[a-z_][a-z0-9_]*$/;

/** Reserved words of Postgres 18 (its manual, appendix C), including those reserved for functions and types. */
const RESERVED = new Set(
  `all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
  column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
  current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
  from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
  localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
  returning right select session_user similar some symmetric system_user table tablesample then to trailing true union
  unique user using variadic verbose when where window with`.split(/\s+/),
);

/** `orders`, `"order"`, `"Grüße"`. */
export function readableName(name: string): string {
  return PLAIN.test(name) && !RESERVED.has(name) ? name : quoteIdent(name);
}

/** The table with its schema, unless that is `public`. */
export function qualifiedName(schema: string, table: string): string {
  return schema === "public" ? readableName(table) : `${readableName(schema)}.${readableName(table)}`;
}
