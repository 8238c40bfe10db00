/**
 * Parses moments from text with the common moment.js tokens, for DATETIME_PARSE. English names, UTC.
 */
import { MONTHS, TOKEN } from "./date-format";
import { dateAt, parseIso, utcMs, zoneMs } from "./dates";
import type { FormulaDate } from "./types";

/** The longest format, in characters; it becomes a regular expression, whose size is limited. */
const MAX_FORMAT = 200;

/** The pattern of each token, and the part of a date that it gives. Other tokens cannot be read. */
const READERS: Record<string, { pattern: string; part: string }> = {
  YYYY: { pattern: "\\d{4}", part: "year" },
  YY: { pattern: "\\d{2}", part: "shortYear" },
  MMMM: { pattern: MONTHS.join("|"), part: "monthName" },
  MMM: { pattern: MONTHS.map((month) => month.slice(0, 3)).join("|"), part: "monthName" },
  MM: { pattern: "\\d{1,2}", part: "month" },
  M: { pattern: "\\d{1,2}", part: "month" },
  DD: { pattern: "\\d{1,2}", part: "day" },
  D: { pattern: "\\d{1,2}", part: "day" },
  HH: { pattern: "\\d{1,2}", part: "hour" },
  H: { pattern: "\\d{1,2}", part: "hour" },
  hh: { pattern: "\\d{1,2}", part: "hour" },
  h: { pattern: "\\d{1,2}", part: "hour" },
  mm: { pattern: "\\d{1,2}", part: "minute" },
  m: { pattern: "\\d{1,2}", part: "minute" },
  ss: { pattern: "\\d{1,2}", part: "second" },
  s: { pattern: "\\d{1,2}", part: "second" },
  SSS: { pattern: "\\d{3}", part: "fraction" },
  SS: { pattern: "\\d{2}", part: "fraction" },
  S: { pattern: "\\d", part: "fraction" },
  A: { pattern: "[ap]m", part: "half" },
  a: { pattern: "[ap]m", part: "half" },
  Z: { pattern: "Z|[+-]\\d\\d:?\\d\\d", part: "zone" },
  ZZ: { pattern: "Z|[+-]\\d\\d:?\\d\\d", part: "zone" },
  X: { pattern: "-?\\d{1,13}", part: "epochSeconds" },
  x: { pattern: "-?\\d{1,16}", part: "epochMs" },
};

/** Parses `text` by `format`, or as ISO 8601 without one; undefined if it does not match. */
export function parseDate(text: string, format?: string): FormulaDate | undefined {
  if (format === undefined) {
    const date = parseIso(text.trim());
    return date && dateAt(date.ms, true);
  }
  const parts = readParts(text.trim(), format);
  if (parts === undefined) return undefined;
  const epochMs = parts.get("epochMs") ?? thousandfold(parts.get("epochSeconds"));
  if (epochMs !== undefined) return dateAt(Number(epochMs), true);
  const ms = utcMs({
    year: yearOf(parts),
    month: monthOf(parts),
    day: Number(parts.get("day") ?? 1),
    hour: hourOf(parts),
    minute: Number(parts.get("minute") ?? 0),
    second: Number(parts.get("second") ?? 0),
    millisecond: Number((parts.get("fraction") ?? "").padEnd(3, "0")),
  });
  return ms === undefined ? undefined : dateAt(ms - zoneMs(parts.get("zone")), true);
}

/** Matches `text` against the format; undefined if it does not match or a token cannot be read. */
function readParts(text: string, format: string): Map<string, string> | undefined {
  if (format.length > MAX_FORMAT) return undefined;
  const names: string[] = [];
  let pattern = "";
  let end = 0;
  for (const match of format.matchAll(TOKEN)) {
    pattern += escapePattern(format.slice(end, match.index));
    end = match.index + match[0].length;
    if (match[1] !== undefined) {
      pattern += escapePattern(match[1]);
      continue;
    }
    const reader = READERS[match[0]];
    if (reader === undefined) return undefined;
    names.push(reader.part);
    pattern += `(${reader.pattern})`;
  }
  const found = new RegExp(`^${pattern}${escapePattern(format.slice(end))}$`, "i").exec(text);
  if (found === null) return undefined;
  return new Map(names.map((name, index) => [name, found[index + 1] as string]));
}

function yearOf(parts: Map<string, string>): number {
  const short = parts.get("shortYear");
  // As in moment: 69 to 99 are years of the last century.
  if (short !== undefined) return Number(short) + (Number(short) > 68 ? 1900 : 2000);
  return Number(parts.get("year") ?? 1970);
}

function monthOf(parts: Map<string, string>): number {
  const name = parts.get("monthName")?.slice(0, 3).toLowerCase();
  if (name === undefined) return Number(parts.get("month") ?? 1);
  return MONTHS.findIndex((month) => month.toLowerCase().startsWith(name)) + 1;
}

function hourOf(parts: Map<string, string>): number {
  const hour = Number(parts.get("hour") ?? 0);
  const half = parts.get("half")?.toLowerCase();
  if (half === undefined) return hour;
  return (hour % 12) + (half === "pm" ? 12 : 0);
}

function thousandfold(seconds: string | undefined): string | undefined {
  return seconds === undefined ? undefined : `${seconds}000`;
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
