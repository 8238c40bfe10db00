/**
 * Estimates how long a first sync or a rebuild still takes, as a range that its end falls into. Sizes of tables are
 * counts of an earlier sync, or estimates with a standard error; see `estimateSize`.
 */

import { strictest } from "../../source";
import type { Progress } from "../../sync/host";
import { MINUTE_MS } from "../../time-units";

const { pageSize } = strictest();

/** The range is for 9 of 10 syncs if errors are normally distributed. */
const STANDARD_ERRORS = 1.65;
/** Before this, a rate means nothing: the first requests wait for connections, and few tables have been measured. */
export const LEAST_MS = 4000;
/** The rate varies by this factor: answers become slower, or clients use the quota. */
const SLOWER = 1.2;
/** Both ends are rounded outward to multiples of this; to minutes if there are several. */
const STEP_MS = 5000;

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
  let [left, variance, guessed] = [0, 0, 0];
  for (const table of open) {
    const size = sizeOf(table, progress.tables);
    if (!size) return null;
    left += size.pages - table.records_done / pageSize;
    variance += size.error ** 2;
    guessed += size.common;
  }
  variance += guessed ** 2;
  // Several tables are read side by side, as fast as the quota allows; one is read page after page.
  const made = open.length > 1 ? (progress.calls ?? progress.pages) : progress.pages;
  // The schema is checked before a table of several pages is put live.
  return rangeOf(left, open.length, Math.sqrt(variance), share, (made * 1000) / elapsedMs);
}

/** Returns the time that a number of calls takes. @param error their standard error */
export function timeOfCalls(calls: number, error: number, share: number): TimeRange {
  return rangeOf(calls, 0, error, share, share);
}

/** @param rate calls a second until now */
function rangeOf(calls: number, checks: number, error: number, share: number, rate: number): TimeRange {
  const spread = STANDARD_ERRORS * error;
  return outward({
    // Turbo may have been turned on: it has not shown in the rate yet.
    least: (Math.max(0, calls - spread) * 1000) / share,
    most: ((calls + checks + spread) * SLOWER * 1000) / Math.min(share, rate),
  });
}

/** `common`: the part of the standard error that all tables which are compared with others have in common. */
interface Pages {
  pages: number;
  error: number;
  common: number;
}

/** Returns the size of a table; null if it is unknown, and no other table can be compared. */
function sizeOf(table: TableProgress, tables: TableProgress[]): Pages | null {
  if (table.records_estimate !== null)
    return { pages: pagesOf(table), error: (table.records_error ?? 0) / pageSize, common: 0 };
  // Its sample was asked for with the third page: it has more than two, so the table is large.
  if (table.records_done > 2 * pageSize) return null;
  const known = tables.filter(
    (one) => (one.done || one.records_estimate !== null) && pagesOf(one) > table.records_done / pageSize,
  );
  if (known.length === 0) return null;
  // Sizes of tables are spread widely, about as much as they are large.
  const mean = known.reduce((sum, one) => sum + pagesOf(one), 0) / known.length;
  return { pages: mean, error: mean, common: mean / Math.sqrt(known.length) };
}

/** Returns the range at another rate, `factor` times as high. */
export function atRate({ least, most }: TimeRange, factor: number): TimeRange {
  return outward({ least: least / factor, most: most / factor });
}

function pagesOf({ done, records_done: read, records_estimate: records }: TableProgress): number {
  return Math.max(1, (done ? read : Math.max(read, records ?? 0)) / pageSize);
}

function outward({ least, most }: TimeRange): TimeRange {
  const stepOf = (ms: number) => (ms < 5 * MINUTE_MS ? STEP_MS : MINUTE_MS);
  return {
    least: Math.floor(least / stepOf(least)) * stepOf(least),
    most: Math.ceil(most / stepOf(most)) * stepOf(most),
  };
}
