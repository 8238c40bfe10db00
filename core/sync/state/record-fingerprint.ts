/** The fingerprint by which a sweep knows a record again. */
import type { RecordPage } from "../../source";
import type { TableCache } from "./base-cache";

/**
 * Signed URLs of attachments die about two hours after they were read. Rows that hold some are written anew within
 * this time, so that the URLs in SQL have an hour to live.
 */
export const URL_REFRESH_MS = 60 * 60_000;

/**
 * The page's own fingerprint of record `index`. That of a record with attachments changes once per URL_REFRESH_MS,
 * each record at a moment of its own, so that a table's URLs are not all refreshed by one sweep.
 *
 * @param nowMs of any clock that only goes forward
 */
export function recordFingerprint(page: RecordPage, index: number, nowMs = performance.now()): bigint {
  const fingerprint = page.fingerprint(index);
  if (!page.hasAttachments(index)) return fingerprint;
  const phaseMs = Number(fingerprint % BigInt(URL_REFRESH_MS));
  return fingerprint ^ BigInt(1 + Math.floor((nowMs + phaseMs) / URL_REFRESH_MS));
}

/** The fingerprint of record `index` as the table has it: URLs of ours do not end, and need no refreshing. */
export function fingerprintIn(
  { hasLastingUrls }: Pick<TableCache, "hasLastingUrls">,
  page: RecordPage,
  index: number,
): bigint {
  return hasLastingUrls ? page.fingerprint(index) : recordFingerprint(page, index);
}

/** More than so many hours no worker remembers a record: what differs by less is the hour, not the record. */
const MOST_HOURS = 1n << 24n;

/**
 * Does record `index` differ from one of the `known` fingerprint in nothing but the URLs of its attachments? True as
 * well where nothing is known (0) of one with attachments: nobody can tell.
 */
export function isUrlRefresh(
  { hasLastingUrls }: Pick<TableCache, "hasLastingUrls">,
  page: RecordPage,
  index: number,
  known: bigint,
): boolean {
  if (hasLastingUrls || !page.hasAttachments(index)) return false;
  return known === 0n || (known ^ page.fingerprint(index)) < MOST_HOURS;
}
