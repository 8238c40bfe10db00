/** Formats times and estimates of pages; numbers and durations as `core/format` does. */
import { formatDuration, inDigits } from "../core/format";

export { counted, formatDuration, inDigits } from "../core/format";

/** `now`, `12 s ago`, `3 min ago`, `5 h ago`, `4 d ago`. */
export function ago(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  if (seconds < 1.5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** `2026-11-20 22:48:03 UTC`. */
export function inUtc(at: Date, iso = at.toISOString()): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/** The forms of a time in UTC. `assets/times.js` has the same ones for the browser's time zone. */
export const timeText = {
  /** `2026-11-20 22:48:03 UTC`. */
  full: (at: Date) => inUtc(at),
  /** `2026-11-20 22:48 UTC`. */
  minute: (at: Date) => `${inUtc(at).slice(0, 16)} UTC`,
  /** `2026-11-20`. */
  date: (at: Date) => at.toISOString().slice(0, 10),
  /** `22:48 UTC`. */
  clock: (at: Date) => `${at.toISOString().slice(11, 16)} UTC`,
  /** `22:48`. */
  bare: (at: Date) => at.toISOString().slice(11, 16),
  /** `20 Nov 22:48`. */
  bareDay: (at: Date) => `${monthDay(at)} ${at.toISOString().slice(11, 16)}`,
};

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `20 Nov`, UTC. Pages have hundreds of them, and each call of `toLocaleString` would take as long as fifty of these. */
export function monthDay(at: Date): string {
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const units: [name: string, ms: number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

/** `3 days`, `24 hours`, `90 seconds`: the largest unit of which there are at least two. */
export function roughly(ms: number): string {
  for (const [name, size] of units) if (ms >= 2 * size) return `${Math.round(ms / size)} ${name}s`;
  return "1 second";
}

/** Two digits are as exact as an estimate can be: `1,234` becomes `1,200`. */
export function aboutDigits(count: number): string {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, count))) - 1);
  return inDigits(Math.round(count / unit) * unit);
}

/** `less than 10 s`, `20 to 45 s`, `50 s to 2 min`, `2 to 3 min 30 s`. */
export function rangeText({ least, most }: { least: number; most: number }): string {
  const [from, to] = [
    formatDuration(Math.floor(least / 1000) * 1000),
    formatDuration(Math.ceil(most / 1000) * 1000),
  ];
  const [wholeFrom, wholeTo] = [from, to].map((text) => text.replace(/^(\d+)\.\d /, "$1 ")) as [
    string,
    string,
  ];
  if (least < 1000) return `less than ${wholeTo}`;
  const unit = / \w+$/.exec(wholeFrom)?.[0];
  const isSameUnit =
    unit !== undefined && wholeTo.endsWith(unit) && !/\d \w+ \d/.test(`${wholeFrom}, ${wholeTo}`);
  return `${isSameUnit ? wholeFrom.slice(0, -unit.length) : wholeFrom} to ${wholeTo}`;
}
