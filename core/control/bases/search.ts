/**
 * Finds bases, tables and fields of an account by name: one query each, however many bases there are. Names are
 * compared without case and punctuation, so `due_date` finds “Due date”.
 */
import type { Db } from "../../context";
import { cleanText } from "../../postgres";

const MAX_TERMS = 6;

/** A table that matches, or has fields that match. */
interface FoundTable {
  baseId: string;
  baseName: string;
  /** In Airtable. */
  name: string;
  /** In SQL. */
  sqlName: string;
  fieldNames: string[];
}

interface FoundBase {
  id: string;
  name: string;
  sourceBaseId: string;
  database: string;
}

/** A name as the search compares it: words in lower case, with one space between them. */
export function normalized(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}]+/gu, " ")
    .trim();
}

export function searchTerms(query: string): string[] {
  const words = normalized(cleanText(query)).split(" ");
  return [...new Set(words)].filter((word) => word !== "").slice(0, MAX_TERMS);
}

/** Each name on a line of its own, between line breaks. */
export function searchLines(names: string[]): string {
  return `\n${names.map(normalized).join("\n")}\n`;
}

/** The account's bases that have every term in their name, id or database; without terms, all. Ordered by name. */
export async function searchBases(
  db: Db,
  accountId: string,
  terms: string[],
  limit: number,
): Promise<FoundBase[]> {
  return db<FoundBase[]>`
    select id, name, source_base_id as "sourceBaseId", database
    from (
      select b.id, b.name, b.source_base_id, d.name as database,
        translate(lower(concat_ws(' ', b.name, b.source_base_id, b.id, d.name)), '_-.', '   ') as texts
      from bases as b join databases as d on d.id = b.database_id
      where b.account_id = ${accountId} and b.state <> 'deleting'
    ) as s
    where ${every(db, terms, (term) => db`strpos(texts, ${term}) > 0`)}
    order by strpos(lower(name), ${terms[0] ?? ""}) <> 1, lower(name), id
    limit ${limit}`;
}

/**
 * The account's tables that have every term in their own name, a field's or their base's, and one in the first two.
 * Names that equal the query come first, then names that begin with it, then tables of `baseId`.
 */
export async function searchTables(
  db: Db,
  accountId: string,
  terms: string[],
  options: { limit: number; baseId: string | undefined },
): Promise<FoundTable[]> {
  if (terms.length === 0) return [];
  const line = `\n${terms.join(" ")}`;
  const isInNames = (term: string) => db`strpos(s.search_text, ${term}) > 0`;
  return db<FoundTable[]>`
    with found as materialized (
      select b.id, b.name as base_name, s.table_id, s.name, s.field_names,
        case when strpos(s.search_text, ${`${line}\n`}) > 0 then 0 when strpos(s.search_text, ${line}) > 0 then 1
          else 2 end as distance,
        b.id <> ${options.baseId ?? ""} as is_other
      from bases as b join source_tables as s on s.base_id = b.id
      where b.account_id = ${accountId} and b.state <> 'deleting'
        and not (${every(db, terms, (term) => db`strpos(s.search_text, ${term}) = 0`)})
        and ${every(db, terms, (term) => db`(${isInNames(term)} or strpos(lower(b.name), ${term}) > 0)`)}
      -- Not by name: comparing texts of ten thousand tables takes longer than finding them.
      order by distance, is_other, b.id collate "C", s.table_id collate "C"
      limit ${options.limit}
    ), live as materialized (
      select b.id, t.name, t.source_id
      from bases as b, jsonb_to_recordset(b.tables) as t (name text, source_id text)
      where b.id in (select id from found)
    )
    select f.id as "baseId", f.base_name as "baseName", f.name, live.name as "sqlName",
      f.field_names as "fieldNames"
    from found as f join live on live.id = f.id and live.source_id = f.table_id
    order by f.distance, f.is_other, lower(f.base_name), f.id, lower(f.name)`;
}

/** True without terms. */
function every(db: Db, terms: string[], condition: (term: string) => ReturnType<Db>) {
  return terms.reduce((all, term) => db`${all} and ${condition(term)}`, db`true`);
}
