/**
 * Parses dates as people and programs write them, into the forms that cells store.
 */

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const LOCAL_TIME = /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?$/;
const ZONED_TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})$/i;

/** `YYYY-MM-DD`, or undefined. A time after the day is cut off. */
export function parseDay(text: string): string | undefined {
  const day = text.trim().slice(0, 10);
  if (!DATE.test(day) || !(text.trim().length === 10 || parseMoment(text, "utc"))) return undefined;
  const date = new Date(`${day}T00:00:00.000Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day) ? day : undefined;
}

/**
 * ISO 8601 in UTC with milliseconds, or undefined.
 *
 * @param timeZone the zone of a time without an offset: an IANA name; `utc` and `client` are UTC
 */
export function parseMoment(text: string, timeZone: string): string | undefined {
  const trimmed = text.trim();
  if (ZONED_TIME.test(trimmed)) return isoOf(Date.parse(trimmed.replace(" ", "T")));
  const local = LOCAL_TIME.exec(DATE.test(trimmed) ? `${trimmed}T00:00` : trimmed);
  if (!local) return undefined;
  const [, year, month, day, hour, minute, second = "0", fraction = "0"] = local;
  const wallMs = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
    Number(fraction.padEnd(3, "0").slice(0, 3)),
  );
  return isoOf(wallMs - zoneOffsetMs(wallMs, timeZone));
}

/** A day or a moment as a user types it, for typecast: text that the strict forms reject is parsed loosely. */
export function parseLoosely(text: string): string | undefined {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : isoOf(ms);
}

function isoOf(ms: number): string | undefined {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/** How far the zone's clocks are ahead of UTC when they show `wallMs`. */
function zoneOffsetMs(wallMs: number, timeZone: string): number {
  if (timeZone === "utc" || timeZone === "client" || Number.isNaN(wallMs)) return 0;
  // Twice, because the first guess uses the offset of another moment than the one that it leads to.
  const guess = offsetAt(wallMs, timeZone);
  return offsetAt(wallMs - guess, timeZone);
}

function offsetAt(ms: number, timeZone: string): number {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch {
    return 0;
  }
  const parts: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1000) * 1000;
}

/** `ms` as the API writes record times: whole seconds, as in every recorded answer. */
export function wholeSecondIso(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString();
}
