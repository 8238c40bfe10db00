/**
 * Formats moments with the common moment.js tokens, for DATETIME_FORMAT. English names, UTC.
 */
import { startOf } from "./dates";

export const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** The format of DATETIME_FORMAT by default. */
export const DEFAULT_FORMAT = "YYYY-MM-DDTHH:mm:ssZ";

/** Abbreviations of formats, as in moment's English locale. */
const LONG_FORMATS: Record<string, string> = {
  LT: "h:mm A",
  LTS: "h:mm:ss A",
  L: "MM/DD/YYYY",
  LL: "MMMM D, YYYY",
  LLL: "MMMM D, YYYY h:mm A",
  LLLL: "dddd, MMMM D, YYYY h:mm A",
  l: "M/D/YYYY",
  ll: "MMM D, YYYY",
  lll: "MMM D, YYYY h:mm A",
  llll: "ddd, MMM D, YYYY h:mm A",
};

/** A token, or text in brackets (captured). Longest alternatives first, so that `MMMM` is not read as `MM` twice. */
export const TOKEN =
  /\[([^\]]*)\]|LTS|LT|LL?L?L?|ll?l?l?|YYYY|YY|Q|MMMM|MMM|MM|Mo|M|DDDD|DDD|DD|Do|D|dddd|ddd|dd|d|E|WW|W|HH|H|hh|h|mm|m|ss|s|SSS|SS|S|A|a|ZZ|Z|X|x/g;

const DAY_MS = 86_400_000;

type Writer = (date: Date) => string | number;

const WRITERS: Record<string, Writer> = {
  YYYY: (date) => pad(date.getUTCFullYear(), 4),
  YY: (date) => pad(date.getUTCFullYear() % 100, 2),
  Q: (date) => Math.floor(date.getUTCMonth() / 3) + 1,
  MMMM: (date) => MONTHS[date.getUTCMonth()] as string,
  MMM: (date) => (MONTHS[date.getUTCMonth()] as string).slice(0, 3),
  MM: (date) => pad(date.getUTCMonth() + 1, 2),
  Mo: (date) => ordinal(date.getUTCMonth() + 1),
  M: (date) => date.getUTCMonth() + 1,
  DDDD: (date) => pad(dayOfYear(date), 3),
  DDD: dayOfYear,
  DD: (date) => pad(date.getUTCDate(), 2),
  Do: (date) => ordinal(date.getUTCDate()),
  D: (date) => date.getUTCDate(),
  dddd: (date) => DAYS[date.getUTCDay()] as string,
  ddd: (date) => (DAYS[date.getUTCDay()] as string).slice(0, 3),
  dd: (date) => (DAYS[date.getUTCDay()] as string).slice(0, 2),
  d: (date) => date.getUTCDay(),
  E: (date) => date.getUTCDay() || 7,
  WW: (date) => pad(isoWeek(date), 2),
  W: isoWeek,
  HH: (date) => pad(date.getUTCHours(), 2),
  H: (date) => date.getUTCHours(),
  hh: (date) => pad(date.getUTCHours() % 12 || 12, 2),
  h: (date) => date.getUTCHours() % 12 || 12,
  mm: (date) => pad(date.getUTCMinutes(), 2),
  m: (date) => date.getUTCMinutes(),
  ss: (date) => pad(date.getUTCSeconds(), 2),
  s: (date) => date.getUTCSeconds(),
  SSS: (date) => pad(date.getUTCMilliseconds(), 3),
  SS: (date) => pad(Math.floor(date.getUTCMilliseconds() / 10), 2),
  S: (date) => Math.floor(date.getUTCMilliseconds() / 100),
  A: (date) => (date.getUTCHours() < 12 ? "AM" : "PM"),
  a: (date) => (date.getUTCHours() < 12 ? "am" : "pm"),
  ZZ: () => "+0000",
  Z: () => "+00:00",
  X: (date) => Math.floor(date.getTime() / 1000),
  x: (date) => date.getTime(),
};

/** Formats the moment `ms`; text in square brackets stays as it is. */
export function formatDate(ms: number, format: string): string {
  const date = new Date(ms);
  return format.replace(TOKEN, (token: string, literal: string | undefined) => {
    if (literal !== undefined) return literal;
    const long = LONG_FORMATS[token];
    return long === undefined ? String(WRITERS[token]?.(date) ?? token) : formatDate(ms, long);
  });
}

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - startOf(date.getTime(), "year")) / DAY_MS) + 1;
}

/** The week by ISO 8601: the one with its Thursday. */
function isoWeek(date: Date): number {
  const thursday = new Date(date.getTime() + (4 - (date.getUTCDay() || 7)) * DAY_MS);
  return Math.floor((dayOfYear(thursday) - 1) / 7) + 1;
}

function ordinal(value: number): string {
  const suffixes: Record<number, string> = { 1: "st", 2: "nd", 3: "rd" };
  const isTeen = value % 100 > 10 && value % 100 < 14;
  return `${value}${isTeen ? "th" : (suffixes[value % 10] ?? "th")}`;
}

function pad(value: number, length: number): string {
  return String(value).padStart(length, "0");
}
