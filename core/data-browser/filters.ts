/** Filters of the data browser: the operators of each kind of column, the values that they take, and their SQL. */
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
  is: { text: "is", hasValue: true },
  is_not: { text: "is not", hasValue: true },
  starts_with: { text: "starts with", hasValue: true },
  has: { text: "has", hasValue: true },
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
  checked: { text: "is checked", hasValue: false },
  unchecked: { text: "is not checked", hasValue: false },
  empty: { text: "is empty", hasValue: false },
  not_empty: { text: "is not empty", hasValue: false },
} as const;

type FilterOperator = keyof typeof OPERATORS;

const ON_DATES: FilterOperator[] = ["on", "before", "after", "from", "until", "empty", "not_empty"];
export const OPERATORS_OF: Record<ColumnKind, readonly FilterOperator[]> = {
  text: ["contains", "is", "is_not", "starts_with", "empty", "not_empty"],
  list: ["contains", "has", "empty", "not_empty"],
  number: ["eq", "ne", "gt", "gte", "lt", "lte", "empty", "not_empty"],
  checkbox: ["checked", "unchecked"],
  date: ON_DATES,
  time: ON_DATES,
};

const MOST_CHARACTERS = 500;
const NUMBER = /^[+-]?(\d{1,100}(\.\d{0,100})?|\.\d{1,100})$/;
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const TIME = /^(\d{4}-\d\d-\d\d)[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?Z?$/;

export function isOperator(text: string): text is FilterOperator {
  return Object.hasOwn(OPERATORS, text);
}

/** @returns why the filter is not possible, for people; undefined if it is */
export function filterProblem({ operator, value }: Filter, column: BrowsedColumn): string | undefined {
  const { kind, sourceName } = column;
  if (!OPERATORS_OF[kind].includes(operator)) {
    const possible = OPERATORS_OF[kind].map((one) => OPERATORS[one].text).join(", ");
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
 * Returns the condition for one filter that has no problem. Never null.
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
  switch (operator) {
    case "contains":
      return containing(cell, column, schema, `${add(`%${escapeLike(value)}%`)}::text`);
    case "starts_with":
      return `coalesce(${cell} ilike ${add(`${escapeLike(value)}%`)}::text, false)`;
    case "is":
      return `coalesce(${cell} = ${add(value)}::text, false)`;
    case "is_not":
      return `${cell} is distinct from ${add(value)}::text`;
    case "has":
      return `coalesce(${cell} @> array[${add(value)}::text], false)`;
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

/** A link is found by the text of the linked record. */
function containing(cell: string, { kind, link }: BrowsedColumn, schema: string, pattern: string): string {
  if (link) {
    const linked = `array(select l.id from ${quoteIdent(schema)}.${quoteIdent(link.table)} as l where l.${quoteIdent(link.primary)}::text ilike ${pattern})`;
    return kind === "list"
      ? `coalesce(${cell} && ${linked}, false)`
      : `coalesce(${cell} = any (${linked}), false)`;
  }
  if (kind === "list") return `exists (select from unnest(${cell}) as e where e ilike ${pattern})`;
  return `coalesce(${cell} ilike ${pattern}, false)`;
}

/** A date stands for the whole day. */
function inTime(
  cell: string,
  operator: FilterOperator,
  value: string,
  add: (value: string) => string,
): string {
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

function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}

function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text) ?? [];
  if (!year || Number(year) === 0) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return date.getUTCMonth() + 1 === Number(month) && date.getUTCDate() === Number(day);
}

function clip(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
