/**
 * Dates, all in UTC.
 */
import { DEFAULT_FORMAT, formatDate } from "../date-format";
import { parseDate } from "../date-parse";
import { addUnits, dateAt, startOf, type Unit, unitsBetween } from "../dates";
import { ERROR, FormulaDate, FormulaError, type FormulaValue } from "../types";
import { MAX_TEXT, toText } from "../values";
import { type FunctionSpec, fromRow, strictFunction } from "./spec";

export const dateFunctions: Record<string, FunctionSpec> = {
  NOW: fromRow((row) => dateAt(row.now(), true) ?? ERROR),
  TODAY: fromRow((row) => dateAt(startOf(row.now(), "day"), false) ?? ERROR),
  DATETIME_PARSE: strictFunction(["value"], parse, ["text"]),
  DATETIME_FORMAT: strictFunction(["date"], format, ["text"]),
  DATEADD: strictFunction(
    ["date", "number", "unit"],
    (date, count, unit) => addUnits(date, count, unit) ?? ERROR,
  ),
  YEAR: datePart((date) => date.getUTCFullYear()),
  MONTH: datePart((date) => date.getUTCMonth() + 1),
  DAY: datePart((date) => date.getUTCDate()),
  HOUR: datePart((date) => date.getUTCHours()),
  MINUTE: datePart((date) => date.getUTCMinutes()),
  SECOND: datePart((date) => date.getUTCSeconds()),
  WEEKDAY: datePart((date) => date.getUTCDay()),
  DATETIME_DIFF: strictFunction(
    ["date", "date"],
    (a, b, unit: Unit = "second") => unitsBetween(a.ms, b.ms, unit),
    ["unit"],
  ),
  // A blank date is neither before nor after another. With this, `OR(IS_AFTER(LAST_MODIFIED_TIME(), …),
  // IS_AFTER(CREATED_TIME(), …))` finds records that were never edited.
  IS_AFTER: strictFunction(["dateOrBlank", "dateOrBlank"], (a, b) => (a && b && a.ms > b.ms ? 1 : 0)),
  IS_BEFORE: strictFunction(["dateOrBlank", "dateOrBlank"], (a, b) => (a && b && a.ms < b.ms ? 1 : 0)),
  IS_SAME: strictFunction(["dateOrBlank", "dateOrBlank"], isSame, ["unit"]),
};

function datePart(of: (date: Date) => number): FunctionSpec {
  return strictFunction(["date"], ({ ms }) => of(new Date(ms)));
}

function isSame(a: FormulaDate | null, b: FormulaDate | null, unit: Unit = "millisecond"): number {
  return a && b && startOf(a.ms, unit) === startOf(b.ms, unit) ? 1 : 0;
}

function parse(value: FormulaValue, format?: string): FormulaValue {
  if (value instanceof FormulaDate) return value;
  const text = toText(value);
  return text instanceof FormulaError ? text : (parseDate(text, format) ?? ERROR);
}

function format(date: FormulaDate, pattern = DEFAULT_FORMAT): FormulaValue {
  if (pattern.length > MAX_TEXT) return ERROR;
  const text = formatDate(date.ms, pattern);
  return text.length > MAX_TEXT ? ERROR : text;
}
