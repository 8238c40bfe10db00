/** Filters of the data browser: the operators of each kind of column, the values that they take, and their SQL. */
import { MOST_CHOICES } from "../control/bases";
import { cutText } from "../cut-text";
import { quoteIdent } from "../replica";
import { type BrowsedColumn, type ColumnKind, cellSql } from "./columns";

export interface Filter {
  /** SQL name. */
  column: string;
  operator: FilterOperator;
  value: string;
}

/** The operators of all kinds, with their texts, and whether they take a value. */
export const OPERATORS = {
  contains: { text: "contains", hasValue: true },
  not_contains: { text: "does not contain", hasValue: true },
  is: { text: "is", hasValue: true },
  is_not: { text: "is not", hasValue: true },
  exactly: { text: "is exactly (Aa)", hasValue: true },
  starts_with: { text: "starts with", hasValue: true },
  has: { text: "has", hasValue: true },
  has_not: { text: "does not have", hasValue: true },
  eq: { text: "=", hasValue: true },
  ne: { text: "≠", hasValue: true },
  gt: { text: ">", hasValue: true },
  gte: { text: "≥", hasValue: true },
  lt: { text: "<", hasValue: true },
  lte: { text: "≤", hasValue: true },
  on: { text: "is on", hasValue: true },
  before: { text: "is before", hasValue: true },
  after: { text: "is after", hasValue: true },
  from: { text: "is on or after", hasValue: true },
  until: { text: "is on or before", hasValue: true },
  today: { text: "is today", hasValue: false },
  yesterday: { text: "is yesterday", hasValue: false },
  this_week: { text: "is in this week", hasValue: false },
  last_7_days: { text: "is in the last 7 days", hasValue: false },
  next_7_days: { text: "is in the next 7 days", hasValue: false },
  this_month: { text: "is in this month", hasValue: false },
  last_30_days: { text: "is in the last 30 days", hasValue: false },
  checked: { text: "is checked", hasValue: false },
  unchecked: { text: "is not checked", hasValue: false },
  empty: { text: "is empty", hasValue: false },
  not_empty: { text: "is not empty", hasValue: false },
} as const;

export type FilterOperator = keyof typeof OPERATORS;

/** Spans of days in UTC: the first one, and the one after the last. `last` and `next` include today; weeks begin on Monday. */
const SPANS: Partial<Record<FilterOperator, [first: string, end: string]>> = (() => {
  const today = "date_trunc('day', now() at time zone 'UTC')";
  const [week, month] = ["week", "month"].map((one) => `date_trunc('${one}', now() at time zone 'UTC')`);
  const days = (count: number) => `${today} + interval '${count} days'`;
  return {
    today: [today, days(1)],
    yesterday: [days(-1), today],
    this_week: [week!, `${week} + interval '7 days'`],
    last_7_days: [days(-6), days(1)],
    next_7_days: [today, days(7)],
    this_month: [month!, `${month} + interval '1 month'`],
    last_30_days: [days(-29), days(1)],
  };
})();

const ON_DATES: FilterOperator[] = [
  "on",
  "before",
  "after",
  "from",
  "until",
  ...(Object.keys(SPANS) as FilterOperator[]),
  "empty",
  "not_empty",
];
/** What a URL may say, by the kind of the column. The first one applies without a choice. */
export const OPERATORS_OF: Record<ColumnKind, readonly FilterOperator[]> = {
  text: ["contains", "not_contains", "is", "is_not", "exactly", "starts_with", "empty", "not_empty"],
  list: ["contains", "not_contains", "has", "has_not", "empty", "not_empty"],
  number: ["eq", "ne", "gt", "gte", "lt", "lte", "empty", "not_empty"],
  checkbox: ["checked", "unchecked"],
  date: ON_DATES,
  time: ON_DATES,
};

/** What a form offers for a column with choices. */
const OF_CHOICE: readonly FilterOperator[] = ["is", "is_not", "empty", "not_empty"];
const OF_CHOICES: readonly FilterOperator[] = ["has", "has_not", "empty", "not_empty"];

export const MOST_CHARACTERS = 500;
const NUMBER = /^[+-]?(\d{1,100}(\.\d{0,100})?|\.\d{1,100})$/;
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const TIME = /^(\d{4}-\d\d-\d\d)[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?Z?$/;

export function isOperator(text: string): text is FilterOperator {
  return Object.hasOwn(OPERATORS, text);
}

/** The operators that fit the column, the usual one first. */
export function operatorsFor(column: BrowsedColumn): readonly FilterOperator[] {
  const { kind } = column;
  if (!choicesOfColumn(column)) return OPERATORS_OF[kind];
  return kind === "list" ? OF_CHOICES : OF_CHOICE;
}

/** The names of a select's choices; undefined: the column has none, or too many to list. */
export function choicesOfColumn({ kind, shownAs, display }: BrowsedColumn): string[] | undefined {
  const isSelect = shownAs === "single_select" || shownAs === "multiple_select";
  const names = Object.keys(display?.colors ?? {});
  if (!isSelect || !(kind === "text" || kind === "list")) return undefined;
  if (names.length === 0 || names.length >= MOST_CHOICES) return undefined;
  return names.sort((one, other) => one.localeCompare(other, "en"));
}

/** @returns why the filter is not possible, for people; undefined if it is */
export function filterProblem({ operator, value }: Filter, column: BrowsedColumn): string | undefined {
  const { kind, sourceName } = column;
  if (!OPERATORS_OF[kind].includes(operator)) {
    const possible = operatorsFor(column)
      .map((one) => OPERATORS[one].text)
      .join(", ");
    return `“${OPERATORS[operator].text}” does not apply to ${sourceName}. Choose one of: ${possible}.`;
  }
  if (!OPERATORS[operator].hasValue) return undefined;
  if (value === "") return `Enter a value to compare ${sourceName} with.`;
  if (value.length > MOST_CHARACTERS) return `The value is longer than ${MOST_CHARACTERS} characters.`;
  if (kind === "number" && !NUMBER.test(value))
    return `“${clip(value)}” is not a number, such as 12 or -0.5.`;
  if (kind === "date" && !isDate(value)) return `“${clip(value)}” is not a date, such as 2026-11-22.`;
  if (kind === "time" && !isDate(value) && !(TIME.test(value) && isDate(value.slice(0, 10)))) {
    return `“${clip(value)}” is not a date or time, such as 2026-11-22 or 2026-11-22 14:30.`;
  }
  return undefined;
}

/**
 * Returns the condition for one filter that has no problem. Never null. Texts are compared without regard to case.
 *
 * @param add adds a value to the statement's parameters, and returns its placeholder
 */
export function filterSql(
  { operator, value }: Filter,
  column: BrowsedColumn,
  schema: string,
  add: (value: string) => string,
): string {
  const cell = cellSql(column);
  const like = (pattern: string) => containing(column, schema, `${add(pattern)}::text`);
  const escaped = escapeLike(value);
  switch (operator) {
    case "contains":
      return like(`%${escaped}%`);
    case "not_contains":
      return `not ${like(`%${escaped}%`)}`;
    case "starts_with":
      return like(`${escaped}%`);
    case "is":
    case "has":
      return like(escaped);
    case "is_not":
    case "has_not":
      return `not ${like(escaped)}`;
    case "exactly":
      return `coalesce(${cell} = ${add(value)}::text, false)`;
    case "eq":
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return `coalesce(${cell} ${SIGNS[operator]} ${add(value)}::text::numeric, false)`;
    case "ne":
      return `${cell} is distinct from ${add(value)}::text::numeric`;
    case "checked":
      return `coalesce(${cell}, false)`;
    case "unchecked":
      return `not coalesce(${cell}, false)`;
    case "empty":
      return emptiness(cell, column.kind);
    case "not_empty":
      return `not (${emptiness(cell, column.kind)})`;
    default:
      return `coalesce(${inTime(cell, operator, value, add)}, false)`;
  }
}

const SIGNS = { eq: "=", gt: ">", gte: ">=", lt: "<", lte: "<=" };

/**
 * A link is found by the text of the linked record, or its id; an attachment by its name, if known. Never null.
 *
 * @param pattern the SQL of what the text, or an element of the list, must be like
 */
export function containing(column: BrowsedColumn, schema: string, pattern: string): string {
  const { kind, link } = column;
  const cell = cellSql(column);
  if (link) {
    const linked = `array(select l.id from ${quoteIdent(schema)}.${quoteIdent(link.table)} as l where l.${quoteIdent(link.primary)}::text ilike ${pattern} or l.id ilike ${pattern})`;
    return kind === "list"
      ? `coalesce(${cell} && ${linked}, false)`
      : `coalesce(${cell} = any (${linked}), false)`;
  }
  if (column.files) {
    return `exists (select from jsonb_array_elements(t.${quoteIdent(column.files)}) as e where e ->> 'filename' ilike ${pattern})`;
  }
  if (kind === "list") return `exists (select from unnest(${cell}) as e where e ilike ${pattern})`;
  return `coalesce(${kind === "text" ? cell : `${cell}::text`} ilike ${pattern}, false)`;
}

/** A date stands for the whole day. */
function inTime(
  cell: string,
  operator: FilterOperator,
  value: string,
  add: (value: string) => string,
): string {
  const span = SPANS[operator];
  if (span) return `${cell} >= ${span[0]} and ${cell} < ${span[1]}`;
  const isDay = DATE.test(value);
  const at = `${add(value.replace(/Z$/, ""))}::text::timestamp`;
  const day = isDay ? at : `date_trunc('day', ${at})`;
  const end = isDay ? `${at} + interval '1 day'` : at;
  if (operator === "on") return `${cell} >= ${day} and ${cell} < ${day} + interval '1 day'`;
  if (operator === "before") return `${cell} < ${at}`;
  if (operator === "from") return `${cell} >= ${at}`;
  if (operator === "after") return `${cell} ${isDay ? ">=" : ">"} ${end}`;
  return `${cell} ${isDay ? "<" : "<="} ${end}`;
}

function emptiness(cell: string, kind: ColumnKind): string {
  if (kind === "list") return `coalesce(cardinality(${cell}), 0) = 0`;
  return kind === "text" ? `coalesce(${cell}, '') = ''` : `${cell} is null`;
}

export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}

function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text) ?? [];
  if (!year || Number(year) === 0) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return date.getUTCMonth() + 1 === Number(month) && date.getUTCDate() === Number(day);
}

function clip(text: string): string {
  return text.length > 40 ? `${cutText(text, 40)}…` : text;
}
