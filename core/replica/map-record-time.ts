/**
 * Converts the source's dates, times and durations to text that Postgres always accepts.
 *
 * Years are those of ISO 8601 (0 is 1 BC) in the proleptic Gregorian calendar, as in Postgres. A value that Postgres
 * would refuse or change (31 February, hour 24, year 300000 in a timestamp) becomes null.
 */

/** Date; then hour and minute, seconds and fraction, zone, each only after the previous one. Years of 4 to 7 digits. */
const ISO =
  /^([+-]?\d{4,7})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:Z|([+-])(\d\d):?(\d\d)?)?)?$/i;

/** Last years of Postgres's types, and the first day of both types. */
const LAST_DATE_YEAR = 5_874_897;
const LAST_TIMESTAMP_YEAR = 294_276;
const FIRST_DAY = { year: -4713, month: 11, day: 24 };

/** Digits of a second's fraction that a timestamp stores; more would be rounded, perhaps into another year. */
const FRACTION_DIGITS = 6;

/** About 285,000 years: whole milliseconds are exact up to here. An interval's range is a little larger. */
const MAX_DURATION_SECONDS = 9_000_000_000_000;

interface Day {
  year: number;
  month: number;
  day: number;
}

/** Returns `YYYY-MM-DD`, or null. A full timestamp gives its date as written, regardless of its zone. */
export function dateText(text: string): string | null {
  const parts = ISO.exec(text);
  if (!parts) return null;
  const day = dayOf(parts);
  if (!isDay(day, LAST_DATE_YEAR) || !isTime(parts)) return null;
  return withEra(day, "");
}

/** Returns `YYYY-MM-DDTHH:MM:SS[.f…]` in UTC, or null. No offset means UTC; a date alone means its midnight. */
export function timestampText(text: string): string | null {
  const parts = ISO.exec(text);
  if (!parts) return null;
  let day = dayOf(parts);
  if (!isDay(day, LAST_TIMESTAMP_YEAR) || !isTime(parts)) return null;
  let hour = parts[4] ?? "00";
  let minute = parts[5] ?? "00";
  if (parts[8] !== undefined) {
    const offset = (Number(parts[9]) * 60 + Number(parts[10] ?? 0)) * (parts[8] === "-" ? -1 : 1);
    const utc = new Date(0);
    utc.setUTCFullYear(day.year, day.month - 1, day.day);
    utc.setUTCHours(Number(hour), Number(minute) - offset);
    // NaN beyond a Date's range, some 20,000 years before the end of a timestamp's: not a valid day then.
    day = { year: utc.getUTCFullYear(), month: utc.getUTCMonth() + 1, day: utc.getUTCDate() };
    if (!isDay(day, LAST_TIMESTAMP_YEAR)) return null;
    hour = twoDigits(utc.getUTCHours());
    minute = twoDigits(utc.getUTCMinutes());
  }
  const fraction = parts[7] ? `.${parts[7].slice(0, FRACTION_DIGITS)}` : "";
  return withEra(day, `T${hour}:${minute}:${parts[6] ?? "00"}${fraction}`);
}

/**
 * Returns `[-]H:MM:SS[.fff]`, castable to interval, to the millisecond; null for a value outside an interval's range.
 */
export function durationText(seconds: number): string | null {
  if (!(Math.abs(seconds) <= MAX_DURATION_SECONDS)) return null;
  const ms = Math.round(Math.abs(seconds) * 1000);
  const whole = Math.floor(ms / 1000);
  const fraction = ms % 1000 === 0 ? "" : `.${String(ms % 1000).padStart(3, "0")}`;
  const sign = seconds < 0 && ms > 0 ? "-" : "";
  const minutes = twoDigits(Math.floor(whole / 60) % 60);
  return `${sign}${Math.floor(whole / 3600)}:${minutes}:${twoDigits(whole % 60)}${fraction}`;
}

function dayOf(parts: RegExpExecArray): Day {
  return { year: Number(parts[1]), month: Number(parts[2]), day: Number(parts[3]) };
}

function isDay({ year, month, day }: Day, lastYear: number): boolean {
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month) && year <= lastYear))
    return false;
  if (year !== FIRST_DAY.year) return year > FIRST_DAY.year;
  return month > FIRST_DAY.month || (month === FIRST_DAY.month && day >= FIRST_DAY.day);
}

function daysOf(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Absent parts compare as "00". */
function isTime(parts: RegExpExecArray): boolean {
  const [hour = "00", minute = "00", second = "00"] = [parts[4], parts[5], parts[6]];
  const [offsetHour = "00", offsetMinute = "00"] = [parts[9], parts[10]];
  return hour <= "23" && minute <= "59" && second <= "59" && offsetHour <= "23" && offsetMinute <= "59";
}

/** Postgres writes years before 1 as `0044-03-15 BC`, with the era after the time. */
function withEra({ year, month, day }: Day, time: string): string {
  const era = year < 1 ? " BC" : "";
  const years = String(year < 1 ? 1 - year : year).padStart(4, "0");
  return `${years}-${twoDigits(month)}-${twoDigits(day)}${time}${era}`;
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : String(value);
}
