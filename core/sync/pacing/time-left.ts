/**
 * Estimates how long a first sync or a rebuild still takes, as a range that its end falls into. Sizes of tables are
 * counts of an earlier sync, or estimates with a standard error; see `tableSizes`.
 */
import type { Progress } from "../../control/bases";
import { strictest } from "../../source";

const { pageSize } = strictest();

/** The range is for 9 of 10 syncs if errors are normally distributed. */
const STANDARD_ERRORS = 1.65;
/** Before this, the rate means nothing: the first requests wait for connections. */
const LEAST_MS = 1000;
/** From this time, tables that have not been measured yet are guessed from the others: at most this much larger. */
const PATIENCE_MS = 3000;
const LARGER = 2;
/** Pages a second of one table, if answers are slow. */
const SLOW_TABLE = 2;
/** The rate varies by this factor: answers become slower, or clients use the quota. */
const SLOWER = 1.2;
/** Calls that were made and are not answered yet. */
const IN_FLIGHT = 2;
/** The swap of the last table, and the schema check before it. */
const END_MS = 2000;

/** Both ends are rounded outward to what people read: multiples of 5 s, 10 s, 30 s, a minute, ten minutes. */
const STEPS: readonly [upToMs: number, stepMs: number][] = [
  [60_000, 5000],
  [180_000, 10_000],
  [600_000, 30_000],
  [3_600_000, 60_000],
  [Number.POSITIVE_INFINITY, 600_000],
];

/** In ms. */
export interface TimeRange {
  least: number;
  most: number;
}

type TableProgress = Progress["tables"][number];

/**
 * @param share calls a second that the sync may make
 * @returns null as long as too little is known
 */
export function timeLeft(progress: Progress, share: number, now: Date): TimeRange | null {
  const elapsedMs = now.getTime() - Date.parse(progress.started_at);
  const open = progress.tables.filter((table) => !table.done);
  if (open.length === 0) return { least: 0, most: 0 };
  if (elapsedMs < LEAST_MS || !progress.pages) return null;
  const [measured, unknown] = [open.filter(isMeasured), open.filter((table) => !isMeasured(table))];
  const guesses = unknown.map((table) => guessed(table, progress.tables));
  if (unknown.length > 0 && (elapsedMs < PATIENCE_MS || guesses.includes(null))) return null;
  const left = sum(measured.map(pagesLeft));
  const error = STANDARD_ERRORS * Math.sqrt(sum(measured.map((table) => errorOf(table) ** 2)));
  const least = Math.max(0, left - error) + unknown.length - IN_FLIGHT;
  // The schema is checked before a table of several pages is put live.
  const most = left + error + sum(guesses.map((pages) => pages ?? 0)) + open.length;
  return outward({
    least: Math.max(0, (least * 1000) / share),
    most: (most * 1000) / slowRate(progress, share, elapsedMs, open.length) + END_MS,
  });
}

/** Returns the time that a number of calls takes, if they are `error` more or fewer at most. */
export function timeOfCalls(calls: number, error: number, share: number): TimeRange {
  const least = Math.max(0, calls - error - IN_FLIGHT);
  return outward({ least: (least * 1000) / share, most: ((calls + error) * SLOWER * 1000) / share + END_MS });
}

/** Returns the fewest calls a second that are likely. Each table is read page after page; samples are not pages. */
function slowRate({ pages = 0, calls = pages }: Progress, share: number, elapsedMs: number, open: number) {
  const [calling, reading] = [calls, pages].map((made) => (made * 1000) / elapsedMs) as [number, number];
  return Math.min(share, Math.max(reading, Math.min(calling, open * SLOW_TABLE))) / SLOWER;
}

function isMeasured(table: TableProgress): boolean {
  return table.records_estimate !== null;
}

/** Returns the pages that a table of unknown size has at most, by the others; null if no other can be compared. */
function guessed(table: TableProgress, tables: TableProgress[]): number | null {
  const isLarge = table.records_done >= pageSize;
  const known = tables.filter((one) => (one.done || isMeasured(one)) && (!isLarge || pagesOf(one) > 1));
  if (known.length === 0) return null;
  return Math.max(1, (LARGER * sum(known.map(pagesOf))) / known.length);
}

/** Returns the range at another rate, `factor` times as high. */
export function atRate({ least, most }: TimeRange, factor: number): TimeRange {
  return outward({ least: least / factor, most: most / factor });
}

function pagesOf({ done, records_done: read, records_estimate: records }: TableProgress): number {
  return Math.max(1, (done ? read : Math.max(read, records ?? 0)) / pageSize);
}

function pagesLeft(table: TableProgress): number {
  return pagesOf(table) - table.records_done / pageSize;
}

function errorOf({ records_error: error = 0 }: TableProgress): number {
  return error / pageSize;
}

function outward({ least, most }: TimeRange): TimeRange {
  const stepOf = (ms: number) => STEPS.find(([upToMs]) => ms <= upToMs)![1];
  return {
    least: Math.floor(least / stepOf(least)) * stepOf(least),
    most: Math.ceil(most / stepOf(most)) * stepOf(most),
  };
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
