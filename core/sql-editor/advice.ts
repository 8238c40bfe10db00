/** What to do about an error of Postgres that people meet in a read-only copy of Airtable, and that Postgres has no hint for. */
import { readableName } from "../exports";
import type { TableSpec } from "../replica";
import type { QueryFailure } from "./run";
import { firstWord, identifiersOf, splitStatements } from "./split";

type Shape = readonly Pick<TableSpec, "name" | "sourceName" | "columns">[];

const WRITES = ["insert", "update", "delete", "merge", "truncate"];
/** First words of statements that may contain another one. */
const FRAMES = ["with", "explain"];
/** Permissions, a read-only transaction, syntax (where the statement is a cursor's query), and a cursor that would write. */
const WRITE_STATES = new Set(["42501", "25006", "42601", "0A000"]);

const WHERE_TO_WRITE =
  "SQL only reads this copy. Change the data in Airtable, or call Airtable's API through the proxy (page Proxy): SQL shows that change immediately.";

/**
 * @param sql the whole text, which `failure.position` refers to
 * @param tables the base's tables; of its other relations, `others` are the names
 */
export function adviceOn(
  failure: QueryFailure,
  sql: string,
  tables: Shape,
  others: readonly string[] = [],
): string | undefined {
  const { message, sqlState, hint, position } = failure;
  switch (sqlState) {
    case "42P01":
      return relationAdvice(message, [...tables.map(({ name }) => name), ...others], tables);
    case "42703":
      return hint ? undefined : quotesAdvice(message, sql.slice(position ?? 0));
    case "42883":
    case "42804":
      return typeAdvice(message, sql.slice(position ?? 0), tables);
    default:
      return WRITE_STATES.has(sqlState ?? "") && isWrite(failure, sql) ? WHERE_TO_WRITE : undefined;
  }
}

function isWrite({ start = 0 }: QueryFailure, sql: string): boolean {
  const [{ text } = { text: "" }] = splitStatements(sql.slice(start));
  const first = firstWord(text);
  if (!FRAMES.includes(first)) return WRITES.includes(first);
  const words = identifiersOf(text);
  return WRITES.some((word) => words.has(word));
}

function relationAdvice(message: string, names: readonly string[], tables: Shape): string | undefined {
  const [, wanted] = /^relation "(.+)" does not exist$/.exec(message) ?? [];
  if (wanted === undefined) return undefined;
  // After a schema, but a name in Airtable may have a dot, too.
  const parts = wanted.split(".");
  const likely = parts.map((_, at) => parts.slice(at).join("."));
  const named = tables.find(({ sourceName }) => likely.includes(sourceName))?.name;
  const name = named ?? nearest(parts.at(-1)!, names) ?? nearest(wanted, names);
  return name === undefined ? undefined : `Did you mean ${readableName(name)}?`;
}

/** Names in double quotes that are no columns: Postgres has a hint if a column has a similar name. */
function quotesAdvice(message: string, at: string): string | undefined {
  const [, wanted] = /^column "(.+)" does not exist$/.exec(message) ?? [];
  if (wanted === undefined || !at.startsWith('"')) return undefined;
  return `Texts are in single quotes: '${wanted.replaceAll("'", "''")}'.`;
}

const NUMBERS = /^(?:smallint|integer|bigint|numeric|real|double precision)$/;
const NUMERIC_FUNCTIONS = /^(?:sum|avg|round|floor|ceil|ceiling|abs|mod|stddev\w*|var\w*|trunc|power|sqrt)$/;

const ARITHMETIC = /^[-+*/%^]$/;

/** A function, an operator or another expression for numbers on a column that is stored as text, or as a list. */
function typeAdvice(message: string, at: string, tables: Shape): string | undefined {
  const [, name, types = ""] = /^function ([^(]+)\((.*)\) does not exist$/.exec(message) ?? [];
  if (name !== undefined) {
    if (!NUMERIC_FUNCTIONS.test(name.split(".").at(-1)!.toLowerCase())) return undefined;
    const [argument] = types.split(", ");
    const [, called] =
      /^[\w."]+\s*\(\s*(?:distinct\s+)?((?:[\p{L}\w$]+|"[^"]+")(?:\.(?:[\p{L}\w$]+|"[^"]+"))?)\s*[,)]/iu.exec(
        at,
      ) ?? [];
    return conversionAdvice(argument!, called, tables);
  }
  const [, left, operator = "", right] = /^operator does not exist: (.+) (\S+) (.+)$/.exec(message) ?? [];
  // Of `coalesce`, `case`, `greatest`, `union` and others.
  const [, one, another] = /^\S+ types (.+) and (.+) cannot be matched$/.exec(message) ?? [];
  const pair = [left ?? one, right ?? another];
  const other = pair.find((type) => type === "text" || type === "text[]");
  const isForNumbers = ARITHMETIC.test(operator) || pair.some((type) => type && NUMBERS.test(type));
  return other && isForNumbers ? conversionAdvice(other, undefined, tables) : undefined;
}

function conversionAdvice(type: string, called: string | undefined, tables: Shape): string | undefined {
  const value = called ?? "the column";
  const own = called?.replace(/^.*\./, "").replaceAll('"', "");
  const isDuration =
    own !== undefined &&
    tables.some(({ columns }) => columns.some((column) => column.name === own && column.type === "duration"));
  if (type === "boolean") return `Count checkboxes: count(*) filter (where ${value}).`;
  if (type === "text[]") {
    return `This column is a list. Take its elements: (select sum(one::numeric) from unnest(${called ?? "…"}) as one).`;
  }
  if (type !== "text") return undefined;
  if (isDuration) return `Durations are text. Convert it: ${called}::interval.`;
  return `Formulas and some other fields are text. Convert it: ${called === undefined ? "add ::numeric" : `${called}::numeric`}.`;
}

/** The name that is most like the wanted one, if it is like it at all: few letters differ, or it begins or ends with it. */
function nearest(wanted: string, names: readonly string[]): string | undefined {
  const text = folded(wanted);
  const [best] = names
    .map((name) => ({ name, distance: distance(text, folded(name)) }))
    .filter(({ distance }) => distance <= Math.max(1, Math.floor(text.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return best?.name ?? names.find((name) => text.length > 2 && folded(name).includes(text));
}

const folded = (text: string) => text.toLowerCase().replaceAll(/[\s_-]+/g, "_");

/** The least number of letters to insert, delete, replace, or swap with the next one. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      next[j] = Math.min(last[j]! + 1, next[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) next[j] = Math.min(next[j]!, before[j - 2]! + 1);
    }
    [before, last] = [last, next];
  }
  return last[b.length]!;
}
