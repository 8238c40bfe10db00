/**
 * Estimates how many records a table has, from random samples of its ids: a platform that does not report the number
 * answers a filter that one record in 60 matches with a page, and the records on it are counted. If there are more than
 * a page, a smaller sample is taken; until then, up to ten times as many are likely.
 */
import type { PlatformFacts, RecordPage } from "./types";

/** Samples are this part of a table, until one fits on a page: 6,000, 60,000 and 600,000 records. */
export const ONE_IN = [60, 600, 6000];

export interface TableSize {
  records: number;
  /** The standard error of the estimate, in records; 0: they were counted. */
  error: number;
}

/**
 * Estimates the size of a table that has more than one page; each estimate is better than the one before.
 *
 * @param ids of the records on its first page
 * @param list requests the first page of the records that match a filter
 * @throws BasetideError as `list`
 */
export async function* tableSizes(
  sample: NonNullable<PlatformFacts["sample"]>,
  ids: readonly string[],
  list: (filter: string) => Promise<Pick<RecordPage, "size" | "offset">>,
): AsyncGenerator<TableSize> {
  for (const oneIn of ONE_IN) {
    const { filter, share } = sample(ids, oneIn);
    const page = await list(filter);
    yield sizeOf(page, share);
    if (page.offset === undefined) return;
  }
}

/** Returns the size of a table of which `share` of the records are on this page, and on further pages. */
export function sizeOf({ size, offset }: Pick<RecordPage, "size" | "offset">, share: number): TableSize {
  // The number on the page is Poisson distributed; if no record matched, there may still be some.
  const [records, error] = offset === undefined ? [size + 0.5, Math.sqrt(size + 1)] : [3 * size, 1.2 * size];
  return { records: Math.round(records / share), error: Math.round(error / share) };
}
