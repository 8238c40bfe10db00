/**
 * The functions that are translated, in one table. `docs/proxy.md` has a table generated from it, and a property test
 * compares each of them with the sandbox's formula engine.
 */
import type { DateExpression, DatePart, DateUnit, TextExpression } from "../../replica";
import {
  compareValues,
  constantNumber,
  constantText,
  contains,
  not,
  textValue,
  truth,
  Untranslatable,
  type Use,
  type Value,
} from "./formula-values";

/** An argument; its value depends on how it is used. */
export type Argument = (use?: Use) => Value;

interface TranslatedFunction {
  /** As people write it. */
  form: string;
  /** What is translated, for people; absent: every use. */
  only?: string;
  /** @throws Untranslatable if the call, with these arguments, is left to the source */
  translate: (args: Argument[], use: Use) => Value;
}

/** Each pattern repeats the value in SQL. */
const MAX_PATTERNS = 20;

/** A plain use: neither decisive nor one of several. */
const ASIDE: Use = { isPositive: false, isInOr: false };

/** With a blank date, the source fails. */
const NOT_IN_OR = "not in `OR` or `XOR`, nor in an `AND` within another function than `AND`";

const AS_DIFFERENCE = "as `DATETIME_DIFF`";

export const translatedFunctions: Record<string, TranslatedFunction> = {
  AND: {
    form: "`AND(…)`",
    // Elsewhere, the result decides even if it is false: an error in one part is not that of the others.
    translate: (args, use) => all("and", atLeast(1, args), use.isPositive ? use : { ...use, isInOr: true }),
  },
  OR: {
    form: "`OR(…)`",
    translate: (args, use) => all("or", atLeast(1, args), { ...use, isInOr: true }),
  },
  XOR: {
    form: "`XOR(…)`",
    translate: (args) => all("xor", atLeast(1, args), { isPositive: false, isInOr: true }),
  },
  NOT: {
    form: "`NOT(…)`",
    translate: (args, use) => ({
      kind: "condition",
      condition: not(truth(exactly(1, args)[0]!({ ...use, isPositive: false }))),
    }),
  },
  IF: {
    form: "`IF(condition, a, b)`",
    translate: (args, use) => {
      if (args.length !== 2) exactly(3, args);
      const [condition, yes, no] = args;
      return {
        kind: "if",
        condition: truth(condition!({ ...use, isPositive: false })),
        yes: yes!(use),
        no: no ? no(use) : { kind: "blank" },
      };
    },
  },
  SWITCH: {
    form: '`SWITCH(value, "a", b, …, other)`',
    only: "up to 20 patterns",
    translate: choice,
  },
  TRUE: { form: "`TRUE()`", translate: constant({ kind: "number", number: { kind: "constant", value: 1 } }) },
  FALSE: {
    form: "`FALSE()`",
    translate: constant({ kind: "number", number: { kind: "constant", value: 0 } }),
  },
  BLANK: { form: "`BLANK()`", translate: constant({ kind: "blank" }) },
  RECORD_ID: {
    form: "`RECORD_ID()`",
    translate: constant({ kind: "text", text: { kind: "record_id" } }),
  },
  CREATED_TIME: {
    form: "`CREATED_TIME()`",
    translate: constant({ kind: "date", date: { kind: "created" } }),
  },
  NOW: { form: "`NOW()`", translate: constant({ kind: "date", date: { kind: "now" } }) },
  TODAY: { form: "`TODAY()`", translate: constant({ kind: "date", date: { kind: "today" } }) },
  FIND: {
    form: '`FIND("text", field)`',
    only: "whether it finds the text: as a condition, or compared with 0. In several values, without a comma",
    translate: position,
  },
  LOWER: {
    form: "`LOWER(text)`",
    only: "compared with, or searched for, text in ASCII; otherwise while no row has other characters",
    translate: (args, use) => folded("lower", args, use),
  },
  UPPER: {
    form: "`UPPER(text)`",
    only: "while no row has characters outside ASCII",
    translate: (args, use) => folded("upper", args, use),
  },
  TRIM: {
    form: "`TRIM(text)`",
    translate: (args, use) => textValue({ kind: "trim", of: textOf(exactly(1, args)[0]!, use) }),
  },
  LEN: {
    form: "`LEN(text)`",
    only: "while no row has characters beyond U+FFFF (emoji)",
    translate: (args, use) => ({
      kind: "number",
      number: { kind: "length", of: textOf(exactly(1, args)[0]!, use) },
    }),
  },
  LEFT: { form: "`LEFT(text, 3)`", only: "as `LEN`", translate: (args, use) => side("left", args, use) },
  RIGHT: { form: "`RIGHT(text, 3)`", only: "as `LEN`", translate: (args, use) => side("right", args, use) },
  MID: { form: "`MID(text, 2, 3)`", only: "as `LEN`", translate: middle },
  SUBSTITUTE: {
    form: '`SUBSTITUTE(text, "a", "b")`',
    only: "every occurrence, by text that is not longer",
    translate: substituted,
  },
  CONCATENATE: {
    form: "`CONCATENATE(…)`, `&`",
    only: "of texts",
    translate: (args, use) => concatenation(atLeast(1, args), use),
  },
  ARRAYJOIN: {
    form: '`ARRAYJOIN(field, ", ")`',
    only: "in `FIND`, of selects and lookups of text, for text without the separator",
    translate: arrayJoin,
  },
  IS_AFTER: { form: "`IS_AFTER(date, date)`", translate: (args, use) => ordered(">", args, use) },
  IS_BEFORE: { form: "`IS_BEFORE(date, date)`", translate: (args, use) => ordered("<", args, use) },
  IS_SAME: {
    form: '`IS_SAME(date, date, "day")`',
    only: "all units but weeks and quarters",
    translate: isSame,
  },
  DATEADD: {
    form: '`DATEADD(TODAY(), -7, "days")`',
    only: "to `TODAY()`, `NOW()`, `CREATED_TIME()` or a date in ISO 8601; all units but quarters",
    translate: dateAdd,
  },
  DATETIME_PARSE: {
    form: '`DATETIME_PARSE("2026-01-31")`',
    only: "of text in ISO 8601, without a format or with `YYYY-MM-DD`",
    translate: parsed,
  },
  DATETIME_FORMAT: {
    form: '`DATETIME_FORMAT(date, "YYYY-MM-DD")`',
    only: `of \`YYYY\`, \`MM\`, \`M\`, \`DD\`, \`D\`, \`HH\`, \`H\`, \`mm\`, \`ss\`, \`T\`, \`- / : . ,\` and spaces; ${AS_DIFFERENCE}`,
    translate: formatted,
  },
  YEAR: { form: "`YEAR(date)`", only: AS_DIFFERENCE, translate: datePart("year") },
  MONTH: { form: "`MONTH(date)`", only: AS_DIFFERENCE, translate: datePart("month") },
  DAY: { form: "`DAY(date)`", only: AS_DIFFERENCE, translate: datePart("day") },
  HOUR: { form: "`HOUR(date)`", only: AS_DIFFERENCE, translate: datePart("hour") },
  MINUTE: { form: "`MINUTE(date)`", only: AS_DIFFERENCE, translate: datePart("minute") },
  SECOND: { form: "`SECOND(date)`", only: AS_DIFFERENCE, translate: datePart("second") },
  WEEKDAY: {
    form: "`WEEKDAY(date)`",
    only: `weeks begin on Sunday; ${AS_DIFFERENCE}`,
    translate: datePart("dow"),
  },
  DATETIME_DIFF: {
    form: '`DATETIME_DIFF(date, date, "days")`',
    only: `up to weeks; ${NOT_IN_OR}`,
    translate: difference,
  },
};

/** Joins texts, for the function and for `&`. */
export function concatenation(args: Argument[], use: Use): Value {
  return textValue({ kind: "join", of: args.map((arg) => textOf(arg, use)) });
}

/** The value is compared with each pattern in turn. */
function choice(args: Argument[], use: Use): Value {
  const [subject, ...rest] = atLeast(3, args);
  if (rest.length > 2 * MAX_PATTERNS) throw new Untranslatable();
  const part = { ...use, isPositive: false };
  const other = rest.length % 2 === 1 ? rest.pop()!(use) : ({ kind: "blank" } as const);
  let chosen: Value = other;
  for (let at = rest.length - 2; at >= 0; at -= 2) {
    const condition = compareValues(subject!(part), "=", rest[at]!(part));
    chosen = { kind: "if", condition, yes: rest[at + 1]!(use), no: chosen };
  }
  return chosen;
}

function all(kind: "and" | "or" | "xor", args: Argument[], use: Use): Value {
  return { kind: "condition", condition: { kind, of: args.map((arg) => truth(arg(use))) } };
}

function constant(value: Value): TranslatedFunction["translate"] {
  return (args) => {
    exactly(0, args);
    return value;
  };
}

function position(args: Argument[], use: Use): Value {
  const [needle, text] = exactly(2, args);
  const searched = constantText(needle!(ASIDE));
  if (searched === undefined) throw new Untranslatable();
  return { kind: "position", found: contains(text!({ ...use, isPositive: false }), searched) };
}

function folded(kind: "lower" | "upper", args: Argument[], use: Use): Value {
  const of = textOf(exactly(1, args)[0]!, use);
  if (of.kind !== "constant") return textValue({ kind, of });
  const value = kind === "lower" ? of.value.toLowerCase() : of.value.toUpperCase();
  return { kind: "text", text: { kind: "constant", value } };
}

function side(kind: "left" | "right", args: Argument[], use: Use): Value {
  const [text, count] = exactly(2, args);
  return textValue({ kind, of: textOf(text!, use), length: countOf(count!, 0) });
}

function middle(args: Argument[], use: Use): Value {
  const [text, from, count] = exactly(3, args);
  return textValue({
    kind: "mid",
    of: textOf(text!, use),
    from: countOf(from!, 1),
    length: countOf(count!, 0),
  });
}

/** A constant number of characters. */
function countOf(argument: Argument, least: number): number {
  const count = constantNumber(argument(ASIDE));
  if (count === undefined || !Number.isInteger(count) || count < least || count > 100_000)
    throw new Untranslatable();
  return count;
}

function substituted(args: Argument[], use: Use): Value {
  const [text, oldText, newText] = exactly(3, args);
  const [old, by] = [constantText(oldText!(ASIDE)), constantText(newText!(ASIDE))];
  // Half of a surrogate pair occurs in no text of Postgres's. A text that grows may become too long for the source.
  if (!old?.isWellFormed() || !by?.isWellFormed() || by.length > old.length) throw new Untranslatable();
  return textValue({ kind: "substitute", of: textOf(text!, use), old, by });
}

function arrayJoin(args: Argument[]): Value {
  const [list, separator] = args;
  if (args.length > 2) throw new Untranslatable();
  const value = list?.(ASIDE);
  if (value?.kind !== "list") throw new Untranslatable();
  const text = separator === undefined ? ", " : constantText(separator(ASIDE));
  if (!text) throw new Untranslatable();
  return { kind: "list", column: value.column, separator: text };
}

function ordered(operator: "<" | ">", args: Argument[], use: Use): Value {
  const [left, right] = exactly(2, args).map(dateOf);
  const blank = use.isPositive ? false : null;
  return { kind: "condition", condition: { kind: "date", left: left!, operator, right: right!, blank } };
}

function isSame(args: Argument[], use: Use): Value {
  const [a, b, unitArgument] = args;
  if (!a || !b || args.length > 3) throw new Untranslatable();
  const [left, right] = [dateOf(a), dateOf(b)];
  const blank = use.isPositive ? false : null;
  if (!unitArgument)
    return { kind: "condition", condition: { kind: "date", left, operator: "=", right, blank } };
  const unit = unitOf(unitArgument);
  // Weeks begin on different days in different places.
  if (unit === "week") throw new Untranslatable();
  return { kind: "condition", condition: { kind: "same_unit", left, right, unit, blank } };
}

function dateAdd(args: Argument[]): Value {
  const [date, number, unit] = exactly(3, args);
  const of = dateOf(date!);
  const count = constantNumber(number!(ASIDE));
  // With a blank date, the source fails.
  if (mayBeBlank(of) || count === undefined || !Number.isInteger(count) || Math.abs(count) > 1_000_000)
    throw new Untranslatable();
  return { kind: "date", date: { kind: "add", of, count, unit: unitOf(unit!) } };
}

function parsed(args: Argument[]): Value {
  const [text, format] = args;
  if (!text || args.length > 2) throw new Untranslatable();
  const iso = constantText(text(ASIDE));
  const pattern = format && constantText(format(ASIDE));
  // Less than a day, or another format, is read in ways that are not documented.
  if (iso === undefined || (format && (pattern !== "YYYY-MM-DD" || iso.length !== pattern.length)))
    throw new Untranslatable();
  return { kind: "date", date: dateOf(text) };
}

/** The parts of a format that mean the same in both languages, as Postgres's. */
const FORMATS: Record<string, string> = {
  YYYY: "YYYY",
  MM: "MM",
  M: "FMMM",
  DD: "DD",
  D: "FMDD",
  HH: "HH24",
  H: "FMHH24",
  mm: "MI",
  ss: "SS",
  T: '"T"',
};

function formatted(args: Argument[], use: Use): Value {
  const [date, format] = exactly(2, args);
  const of = failingDate(date!, use);
  const runs = constantText(format!(ASIDE))?.match(/([A-Za-z])\1*|[^A-Za-z]/g) ?? [];
  const pattern = runs.map((run) => FORMATS[run] ?? (/^[-/:., ]$/.test(run) ? run : undefined));
  if (pattern.length === 0 || pattern.length > 50 || pattern.includes(undefined)) throw new Untranslatable();
  return textValue({ kind: "date_text", date: of, pattern: pattern.join("") });
}

function datePart(part: DatePart): TranslatedFunction["translate"] {
  return (args, use) => {
    const date = failingDate(exactly(1, args)[0]!, use);
    return { kind: "number", number: { kind: "date_part", date, part } };
  };
}

/** With a blank date, the source fails, and with it an OR of which another part is true. */
function failingDate(argument: Argument, use: Use): DateExpression {
  const date = dateOf(argument);
  if (mayBeBlank(date) && use.isInOr) throw new Untranslatable();
  return date;
}

const UNIT_MS: Partial<Record<DateUnit, number>> = {
  millisecond: 1,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
};

function difference(args: Argument[], use: Use): Value {
  const [to, from, unit] = args;
  if (!to || !from || args.length > 3) throw new Untranslatable();
  const unitMs = UNIT_MS[unit ? unitOf(unit) : "second"];
  const [start, end] = [failingDate(from, use), failingDate(to, use)];
  if (unitMs === undefined) throw new Untranslatable();
  return { kind: "number", number: { kind: "difference", from: start, to: end, unitMs } };
}

function mayBeBlank(date: DateExpression): boolean {
  return date.kind === "column";
}

const UNITS: Record<string, DateUnit> = {
  ms: "millisecond",
  s: "second",
  m: "minute",
  h: "hour",
  d: "day",
  w: "week",
  M: "month",
  y: "year",
};

function unitOf(argument: Argument): DateUnit {
  const name = constantText(argument(ASIDE)) ?? "";
  const unit = UNITS[name] ?? name.toLowerCase().replace(/s$/, "");
  if (!Object.values(UNITS).includes(unit as DateUnit)) throw new Untranslatable();
  return unit as DateUnit;
}

/** An error in a part of a text is one of the whole: what is known of the whole's use holds for the part. */
function textOf(argument: Argument, use: Use): TextExpression {
  const value = argument({ ...use, isPositive: false });
  if (value.kind !== "text") throw new Untranslatable();
  return value.text;
}

/** A day, or a moment with its zone. */
const ISO = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/;

function dateOf(argument: Argument): DateExpression {
  const value = argument(ASIDE);
  if (value.kind === "date") return value.date;
  const iso = constantText(value);
  if (iso === undefined || !ISO.test(iso) || !isDay(iso.slice(0, 10))) throw new Untranslatable();
  return { kind: "constant", iso: new Date(iso).toISOString().slice(0, -1) };
}

/** 31 February is not a day, but JavaScript takes it for one in March. */
function isDay(text: string): boolean {
  const time = Date.parse(`${text}T00:00:00Z`);
  return Number.isFinite(time) && text > "0001" && new Date(time).toISOString().startsWith(text);
}

function exactly(count: number, args: Argument[]): Argument[] {
  if (args.length !== count) throw new Untranslatable();
  return args;
}

function atLeast(count: number, args: Argument[]): Argument[] {
  if (args.length < count) throw new Untranslatable();
  return args;
}
