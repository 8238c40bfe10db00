/**
 * Estimates how many records a table has, from a random sample of its ids: a platform that does not report the number
 * lists the records that a filter matches, about one of each page, and they are counted. This costs one call more per
 * hundred pages.
 */
import type { PlatformFacts, RecordPage } from "./types";

export interface TableSize {
  records: number;
  /** The standard error of the estimate, in records; 0: they were counted. */
  error: number;
}

/**
 * Estimates the size of a table that has several pages.
 *
 * @param ids of the records on one of them
 * @param list requests a page of the records that match a filter
 * @throws BasetideError as `list`
 */
export async function estimateSize(
  sample: NonNullable<PlatformFacts["sample"]>,
  ids: readonly string[],
  list: (filter: string, offset: string | undefined) => Promise<Pick<RecordPage, "size" | "offset">>,
): Promise<TableSize> {
  const { filter, share } = sample(ids);
  let matched = 0;
  let offset: string | undefined;
  do {
    const page = await list(filter, offset);
    matched += page.size;
    offset = page.offset;
  } while (offset !== undefined);
  return sizeOf(matched, share);
}

/** Returns the size of a table, a sample of which has `matched` records: their number is Poisson distributed. */
export function sizeOf(matched: number, share: number): TableSize {
  // If no record matched, there may still be some.
  return { records: Math.round(matched / share), error: Math.round(Math.sqrt(matched + 1) / share) };
}
