/**
 * Date arithmetic in UTC, with the units of DATEADD, DATETIME_DIFF and IS_SAME.
 */
import { FormulaDate } from "./types";

export type Unit =
  | "millisecond"
  | "second"
  | "minute"
  | "hour"
  | "day"
  | "week"
  | "month"
  | "quarter"
  | "year";

/** The furthest moment from 1970 that a JavaScript date can represent, ms. */
const MAX_MS = 8.64e15;

/** Units of a fixed length, in ms. */
const LENGTH_MS: Partial<Record<Unit, number>> = {
  millisecond: 1,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
};

/** The other units, in months. */
const LENGTH_MONTHS: Partial<Record<Unit, number>> = { month: 1, quarter: 3, year: 12 };

/** Only here case matters: `M` is months, `m` is minutes. */
const SHORT_UNITS: ReadonlyMap<string, Unit> = new Map([
  ["ms", "millisecond"],
  ["s", "second"],
  ["m", "minute"],
  ["h", "hour"],
  ["d", "day"],
  ["w", "week"],
  ["M", "month"],
  ["Q", "quarter"],
  ["y", "year"],
]);

const ISO =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

/** The unit of that name (singular, plural or short), or undefined. */
export function unitOf(name: string): Unit | undefined {
  const short = SHORT_UNITS.get(name);
  if (short !== undefined) return short;
  const singular = name.toLowerCase().replace(/s$/, "");
  return Object.hasOwn(LENGTH_MS, singular) || Object.hasOwn(LENGTH_MONTHS, singular)
    ? (singular as Unit)
    : undefined;
}

/** A date from ms since the epoch, or undefined if it is out of JavaScript's range. */
export function dateAt(ms: number, hasTime: boolean): FormulaDate | undefined {
  return Math.abs(ms) <= MAX_MS ? new FormulaDate(Math.trunc(ms), hasTime) : undefined;
}

export function isoOf(ms: number): string | undefined {
  return Math.abs(ms) <= MAX_MS ? new Date(ms).toISOString() : undefined;
}

/** Parses ISO 8601; a time without a zone is GMT. Undefined if the text or its day is invalid. */
export function parseIso(text: string): FormulaDate | undefined {
  const found = ISO.exec(text);
  if (found === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction, zone] = found;
  const ms = utcMs({
    year: Number(year),
    month: Number(month),
    day: Number(day),
    hour: Number(hour ?? 0),
    minute: Number(minute ?? 0),
    second: Number(second ?? 0),
    millisecond: Number((fraction ?? "").padEnd(3, "0").slice(0, 3)),
  });
  return ms === undefined ? undefined : new FormulaDate(ms - zoneMs(zone), hour !== undefined);
}

/** The parts of a moment, in their usual numbering: months from 1. */
interface DateParts {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  millisecond: number;
}

/** The parts as ms since the epoch, or undefined for a day or time that does not exist. */
export function utcMs(parts: DateParts): number | undefined {
  const { year, month, day, hour, minute, second, millisecond } = parts;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(0);
  // Not Date.UTC, which reads the years 0 to 99 as 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return date.setUTCHours(hour, minute, second, millisecond);
}

/** `+02:00`, `-0530` or `+02` in ms east of GMT; 0 for `Z` or nothing. */
export function zoneMs(zone: string | undefined): number {
  if (zone === undefined || zone.toUpperCase() === "Z") return 0;
  const digits = zone.replace(":", "");
  const ms = Number(digits.slice(1, 3)) * 3_600_000 + Number(digits.slice(3) || 0) * 60_000;
  return digits.startsWith("-") ? -ms : ms;
}

/** Adds whole units (fractions are cut off); the 31st becomes the last day of a shorter month. */
export function addUnits(date: FormulaDate, count: number, unit: Unit): FormulaDate | undefined {
  const lengthMs = LENGTH_MS[unit];
  const whole = Math.trunc(count);
  if (lengthMs !== undefined) {
    return dateAt(date.ms + whole * lengthMs, date.hasTime || lengthMs < 86_400_000);
  }
  return dateAt(addMonths(date.ms, whole * (LENGTH_MONTHS[unit] as number)), date.hasTime);
}

/** Whole units from `b` to `a`, towards zero; negative when `a` is earlier. */
export function unitsBetween(a: number, b: number, unit: Unit): number {
  const lengthMs = LENGTH_MS[unit];
  const count =
    lengthMs === undefined ? monthsBetween(a, b) / (LENGTH_MONTHS[unit] as number) : (a - b) / lengthMs;
  // Adding 0 turns -0 into 0.
  return Math.trunc(count) + 0;
}

/** The first moment of the unit that `ms` lies in. Weeks begin on Sunday. */
export function startOf(ms: number, unit: Unit): number {
  const months = LENGTH_MONTHS[unit];
  if (months !== undefined) {
    const date = new Date(ms);
    const month = date.getUTCMonth();
    date.setUTCFullYear(date.getUTCFullYear(), month - (month % months), 1);
    return date.setUTCHours(0, 0, 0, 0);
  }
  const lengthMs = LENGTH_MS[unit] as number;
  // 1970 began on a Thursday, four days after a Sunday.
  const shiftMs = unit === "week" ? 4 * 86_400_000 : 0;
  return Math.floor((ms + shiftMs) / lengthMs) * lengthMs - shiftMs;
}

function addMonths(ms: number, count: number): number {
  const date = new Date(ms);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + count);
  const lastDay = new Date(date);
  lastDay.setUTCMonth(date.getUTCMonth() + 1, 0);
  return date.setUTCDate(Math.min(day, lastDay.getUTCDate()));
}

/** Whole months from `b` to `a`, towards zero. */
function monthsBetween(a: number, b: number): number {
  if (a < b) return -monthsBetween(b, a);
  const later = new Date(a);
  const earlier = new Date(b);
  const months =
    (later.getUTCFullYear() - earlier.getUTCFullYear()) * 12 + later.getUTCMonth() - earlier.getUTCMonth();
  return addMonths(b, months) > a ? months - 1 : months;
}
