/**
 * Conditions on rows, and their SQL.
 *
 * C1. A condition is true or false for a row only if the source is known to evaluate it so. Otherwise it is unknown,
 *     which is NULL in SQL, and combines as NULL does: an AND with a false part is false, an OR with a true part true.
 */
import type { PendingQuery, Row } from "postgres";
import type { ReplicaSql } from "./connection";

/** Never null for a blank cell, which is the empty text; null: unknown. Columns are given by their SQL names. */
export type TextExpression =
  | { kind: "constant"; value: string }
  | { kind: "column"; column: string }
  | { kind: "record_id" }
  | { kind: "join"; of: TextExpression[] }
  | { kind: "lower" | "upper" | "trim"; of: TextExpression }
  | { kind: "left" | "right"; of: TextExpression; length: number }
  /** `length` characters from position `from`, which counts from 1. */
  | { kind: "mid"; of: TextExpression; from: number; length: number }
  /** Every `old` becomes `by`. */
  | { kind: "substitute"; of: TextExpression; old: string; by: string }
  /** A date by a pattern of `to_char`. */
  | { kind: "date_text"; date: DateExpression; pattern: string };

/** Null for a blank cell: it is unknown whether that counts as 0. */
export type NumberExpression =
  | { kind: "constant"; value: number }
  /** `isText`: the column stores numbers as text. */
  | { kind: "column"; column: string; isText: boolean }
  | { kind: "length"; of: TextExpression }
  /** Whole units from `from` to `to`, towards zero. */
  | { kind: "difference"; from: DateExpression; to: DateExpression; unitMs: number }
  | { kind: "date_part"; date: DateExpression; part: DatePart };

/** A moment in UTC; null for a blank cell. */
export type DateExpression =
  | { kind: "constant"; iso: string }
  | { kind: "column"; column: string }
  | { kind: "created" }
  | { kind: "now" | "today" }
  | { kind: "add"; of: DateExpression; count: number; unit: DateUnit };

export type DateUnit = "millisecond" | "second" | "minute" | "hour" | "day" | "week" | "month" | "year";

/** `dow`: from 0, Sunday. */
export type DatePart = "year" | "month" | "day" | "hour" | "minute" | "second" | "dow";

export type Comparison = "=" | "<" | "<=" | ">" | ">=";

export type Condition =
  | { kind: "and" | "or" | "xor"; of: Condition[] }
  | { kind: "not"; of: Condition }
  | { kind: "if"; condition: Condition; yes: Condition; no: Condition }
  | { kind: "constant"; value: boolean }
  /** A checked checkbox. */
  | { kind: "checked"; column: string }
  | { kind: "same_text"; left: TextExpression; right: TextExpression }
  /** `of` in lower case is, or contains, this text: ASCII in lower case. */
  | { kind: "lower_is" | "lower_contains"; of: TextExpression; text: string }
  | { kind: "contains"; of: TextExpression; text: string }
  /** `blank`: the result if an operand is a blank cell; null: unknown. */
  | {
      kind: "number";
      left: NumberExpression;
      operator: Comparison;
      right: NumberExpression;
      blank: false | null;
    }
  | { kind: "date"; left: DateExpression; operator: Comparison; right: DateExpression; blank: false | null }
  /** Both moments lie in the same unit of time. */
  | { kind: "same_unit"; left: DateExpression; right: DateExpression; unit: DateUnit; blank: false | null }
  /** A number that is blank; unknown for 0. */
  | { kind: "no_number"; of: NumberExpression }
  | { kind: "no_date"; of: DateExpression }
  /** An array of texts has an element that contains this text; is this text only; is empty. */
  | { kind: "list_contains" | "list_is"; column: string; text: string }
  | { kind: "list_empty"; column: string };

/** A part of a statement. */
export type SqlFragment = PendingQuery<Row[]>;

/** The characters that `String.prototype.trim` removes. */
const WHITESPACE =
  "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";
/** The characters outside of ASCII whose lower case contains an ASCII letter: the Kelvin sign, and I with a dot. */
const LOWERED_TO_ASCII = ["\u212a", "\u0130"];

/** Returns whether the condition is true or false for every row. */
export function isCertain(condition: Condition): boolean {
  switch (condition.kind) {
    case "and":
    case "or":
    case "xor":
      return condition.of.every(isCertain);
    case "not":
      return isCertain(condition.of);
    case "if":
      return [condition.condition, condition.yes, condition.no].every(isCertain);
    case "same_text":
      return isCertainText(condition.left) && isCertainText(condition.right);
    case "contains":
      return isCertainText(condition.of);
    case "number":
    case "date":
    case "same_unit":
      return condition.blank === false;
    case "constant":
    case "checked":
    case "no_date":
    case "list_contains":
    case "list_is":
    case "list_empty":
      return true;
    default:
      return false;
  }
}

function isCertainText(text: TextExpression): boolean {
  if (text.kind === "substitute") return isCertainText(text.of);
  return text.kind === "constant" || text.kind === "column" || text.kind === "record_id";
}

/** @returns SQL of a boolean of the row `t` */
export function conditionSql(sql: ReplicaSql, condition: Condition): SqlFragment {
  const inner = (of: Condition) => conditionSql(sql, of);
  const column = (name: string) => sql`t.${sql(name)}`;
  const compared = (
    left: SqlFragment,
    { operator = "=", blank }: { operator?: Comparison; blank: false | null },
    right: SqlFragment,
  ) => {
    const isSo = sql`${left} ${sql.unsafe(operator)} ${right}`;
    return blank === false ? sql`coalesce(${isSo}, false)` : sql`(${isSo})`;
  };
  switch (condition.kind) {
    case "and":
    case "or":
      return sql`(${joined(sql, ` ${condition.kind} `, condition.of.map(inner))})`;
    case "xor":
      return condition.of.map(inner).reduce((left, right) => sql`(${left} <> ${right})`);
    case "not":
      return sql`(not ${inner(condition.of)})`;
    case "if": {
      const { yes, no } = condition;
      return sql`(case ${inner(condition.condition)} when true then ${inner(yes)} when false then ${inner(no)} end)`;
    }
    case "constant":
      return condition.value ? sql`true` : sql`false`;
    case "checked":
      return sql`coalesce(${column(condition.column)}, false)`;
    case "same_text":
      return sql`(${textSql(sql, condition.left)} = ${textSql(sql, condition.right)})`;
    case "contains":
      return sql`(strpos(${textSql(sql, condition.of)}, ${condition.text}) > 0)`;
    case "lower_is":
    case "lower_contains": {
      const of = textSql(sql, condition.of);
      const lower = sql`lower(${of} collate "C")`;
      const holds =
        condition.kind === "lower_is"
          ? sql`${lower} = ${condition.text}`
          : sql`strpos(${lower}, ${condition.text}) > 0`;
      const odd = LOWERED_TO_ASCII.map((character) => sql`strpos(${of}, ${character}) > 0`);
      return sql`(${holds} or ((${joined(sql, " or ", odd)}) and null))`;
    }
    case "number":
      return compared(numberSql(sql, condition.left), condition, numberSql(sql, condition.right));
    case "date":
      return compared(dateSql(sql, condition.left), condition, dateSql(sql, condition.right));
    case "same_unit": {
      const unit = sql.unsafe(`'${condition.unit}'`);
      const start = (date: DateExpression) => sql`date_trunc(${unit}, ${dateSql(sql, date)})`;
      return compared(start(condition.left), condition, start(condition.right));
    }
    case "no_number": {
      const of = numberSql(sql, condition.of);
      return sql`(${of} is null or (${of} = 0 and null))`;
    }
    case "no_date":
      return sql`(${dateSql(sql, condition.of)} is null)`;
    case "list_contains":
      return sql`coalesce(strpos(array_to_string(${column(condition.column)}, ','), ${condition.text}) > 0, false)`;
    case "list_is":
      return sql`coalesce(${column(condition.column)} = array[${condition.text}]::text[], false)`;
    case "list_empty":
      return sql`(coalesce(cardinality(${column(condition.column)}), 0) = 0)`;
  }
}

function textSql(sql: ReplicaSql, text: TextExpression): SqlFragment {
  switch (text.kind) {
    case "constant":
      return sql`${text.value}::text`;
    case "column":
      return sql`coalesce(t.${sql(text.column)}, '')`;
    case "record_id":
      return sql`t.id`;
    case "join": {
      const parts = text.of.map((part) => textSql(sql, part));
      return sql`(${joined(sql, " || ", parts)})`;
    }
    case "lower":
    case "upper": {
      // Beyond ASCII, the rules depend on the version of Unicode.
      const of = textSql(sql, text.of);
      const folded = text.kind === "lower" ? sql`lower(${of} collate "C")` : sql`upper(${of} collate "C")`;
      return sql`(case when octet_length(${of}) = char_length(${of}) then ${folded} end)`;
    }
    case "trim":
      return sql`btrim(${textSql(sql, text.of)}, ${WHITESPACE})`;
    case "left":
    case "right": {
      const of = textSql(sql, text.of);
      const part =
        text.kind === "left" ? sql`left(${of}, ${text.length}::int)` : sql`right(${of}, ${text.length}::int)`;
      return countable(sql, of, part);
    }
    case "mid": {
      const of = textSql(sql, text.of);
      return countable(sql, of, sql`substr(${of}, ${text.from}::int, ${text.length}::int)`);
    }
    case "substitute":
      return sql`replace(${textSql(sql, text.of)}, ${text.old}::text, ${text.by}::text)`;
    case "date_text": {
      const date = dateSql(sql, text.date);
      return usual(sql, date, sql`to_char(${date}, ${text.pattern})`);
    }
  }
}

function numberSql(sql: ReplicaSql, number: NumberExpression): SqlFragment {
  switch (number.kind) {
    case "constant":
      return sql`${String(number.value)}::text::numeric`;
    case "column":
      return number.isText ? sql`t.${sql(number.column)}::numeric` : sql`t.${sql(number.column)}`;
    case "length": {
      const of = textSql(sql, number.of);
      return countable(sql, of, sql`char_length(${of})`);
    }
    case "difference": {
      const ms = sql`extract(epoch from ${dateSql(sql, number.to)} - ${dateSql(sql, number.from)}) * 1000`;
      return sql`trunc(${ms} / ${String(number.unitMs)}::text::numeric)`;
    }
    case "date_part": {
      const date = dateSql(sql, number.date);
      return usual(sql, date, sql`trunc(extract(${sql.unsafe(number.part)} from ${date}))`);
    }
  }
}

function dateSql(sql: ReplicaSql, date: DateExpression): SqlFragment {
  switch (date.kind) {
    case "constant":
      return sql`${date.iso}::text::timestamp`;
    case "column":
      return sql`t.${sql(date.column)}::timestamp`;
    case "created":
      return sql`t.created_time`;
    case "now":
      return sql`(now() at time zone 'UTC')`;
    case "today":
      return sql`date_trunc('day', now() at time zone 'UTC')`;
    case "add": {
      const interval = sql.unsafe(`interval '${date.count} ${date.unit}s'`);
      return sql`(${dateSql(sql, date.of)} + ${interval})`;
    }
  }
}

/** Null for years that are written, or counted, in several ways. */
function usual(sql: ReplicaSql, date: SqlFragment, value: SqlFragment): SqlFragment {
  return sql`(case when ${date} >= '0001-01-01' and ${date} < '10000-01-01' then ${value} end)`;
}

/** Null if `of` has a character beyond U+FFFF, which the source counts as two. */
function countable(sql: ReplicaSql, of: SqlFragment, counted: SqlFragment): SqlFragment {
  return sql`(case when octet_length(${of}) = char_length(${of}) or ${of} !~ '[\\U00010000-\\U0010FFFF]' then ${counted} end)`;
}

/** Parts of a statement with the same text between them; nothing if there are none. */
export function joined(sql: ReplicaSql, between: string, parts: SqlFragment[]): SqlFragment {
  // An empty array would become a parameter.
  if (parts.length === 0) return sql``;
  return sql`${parts.flatMap((part, index) => (index === 0 ? [part] : [sql.unsafe(between), part]))}`;
}
