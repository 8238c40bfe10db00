/**
 * Parameters of a query in the console: `:name`, outside of texts, comments and quoted names. Their values become texts
 * in quotes, whose type Postgres takes from where they are, as in any query: `price > '5'`, `interval '2 days'`. The
 * console's pages use it, too.
 */
import { type SqlToken, sqlTokens } from "./sql-tokens";

/** After these, a colon is Postgres' own. */
const NAMES: SqlToken["kind"][] = ["word", "quoted", "text", "number"];

/** The names of a query's parameters, each once, in their order. */
export function parametersOf(sql: string): string[] {
  return [...new Set(placesOf(sql).map(({ name }) => name))];
}

export interface BoundSql {
  sql: string;
  /** From an offset in the bound text to the one in the text with names. */
  original(offset: number): number;
}

/** @param values by name; a parameter without one, or with an empty one, is null */
export function bindParameters(sql: string, values: ReadonlyMap<string, string>): BoundSql {
  const changes = placesOf(sql).map(({ name, start }) => ({
    start,
    end: start + name.length + 1,
    text: literal(values.get(name) ?? ""),
  }));
  let bound = "";
  let from = 0;
  for (const { start, end, text } of changes) {
    bound += sql.slice(from, start) + text;
    from = end;
  }
  return {
    sql: bound + sql.slice(from),
    original(offset) {
      let shift = 0;
      for (const { start, end, text } of changes) {
        if (offset <= start + shift) break;
        if (offset < start + shift + text.length) return start;
        shift += text.length - (end - start);
      }
      return offset - shift;
    },
  };
}

/** Not what Postgres has itself: casts (`a::b`), named arguments (`a := b`), parts of an array (`a[b:c]`), keys of JSON (`'a':b`). */
function placesOf(sql: string): { name: string; start: number }[] {
  const places: { name: string; start: number }[] = [];
  let depth = 0;
  let before: SqlToken | undefined;
  let colon: SqlToken | undefined;
  for (const token of sqlTokens(sql)) {
    const { kind, text, start } = token;
    if (colon && kind === "word") places.push({ name: text, start: start - 1 });
    if (text === "[") depth++;
    if (text === "]") depth--;
    const isOther = before && (NAMES.includes(before.kind) || ":])".includes(before.text));
    colon = text === ":" && depth === 0 && !isOther ? token : undefined;
    before = token;
  }
  return places;
}

/** Means the same whatever `standard_conforming_strings` is. */
function literal(value: string): string {
  if (value === "") return "null";
  const quoted = value.replaceAll("'", "''");
  return value.includes("\\") ? `E'${quoted.replaceAll("\\", "\\\\")}'` : `'${quoted}'`;
}
