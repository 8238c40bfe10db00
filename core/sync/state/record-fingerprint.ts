/** The fingerprint by which a sweep detects that a record is unchanged. */
import type { RecordPage } from "../../source";
import type { TableCache } from "./base-cache";
import { FINGERPRINT_BITS } from "./fingerprints";

/**
 * Signed URLs of attachments expire about two hours after they were read. Rows that contain some are written again
 * within this time, so that the URLs in SQL are valid for at least another hour.
 */
export const URL_REFRESH_MS = 60 * 60_000;

/**
 * Returns the page's own fingerprint of record `index`. The fingerprint of a record with attachments changes once per
 * URL_REFRESH_MS, at a different moment for each record, so that one sweep does not refresh all URLs of a table.
 *
 * @param nowMs of any monotonic clock
 */
export function recordFingerprint(page: RecordPage, index: number, nowMs = performance.now()): bigint {
  const fingerprint = page.fingerprint(index);
  if (!page.hasAttachments(index)) return fingerprint;
  return fingerprint ^ BigInt(1 + Math.floor((nowMs + phaseOf(fingerprint)) / URL_REFRESH_MS));
}

/** Returns the fingerprint of record `index` in this table: our own URLs do not expire and need no refresh. */
export function fingerprintIn(
  { hasLastingUrls }: Pick<TableCache, "hasLastingUrls">,
  page: RecordPage,
  index: number,
  nowMs = performance.now(),
): bigint {
  return hasLastingUrls ? page.fingerprint(index) : recordFingerprint(page, index, nowMs);
}

/** Returns when the first of the page's fingerprints in this table changes by itself; Infinity: none does. */
export function validUntil(
  { hasLastingUrls }: Pick<TableCache, "hasLastingUrls">,
  page: RecordPage,
  nowMs: number,
): number {
  let until = Infinity;
  if (hasLastingUrls) return until;
  for (let index = 0; index < page.size; index++) {
    if (!page.hasAttachments(index)) continue;
    const phaseMs = phaseOf(page.fingerprint(index));
    until = Math.min(until, (1 + Math.floor((nowMs + phaseMs) / URL_REFRESH_MS)) * URL_REFRESH_MS - phaseMs);
  }
  return until;
}

function phaseOf(fingerprint: bigint): number {
  return Number(fingerprint % BigInt(URL_REFRESH_MS));
}

/**
 * No worker remembers a record for more than this many hours: fingerprints that differ by less differ in the hour, not
 * in the record.
 */
const MOST_HOURS = 1n << 16n;

/**
 * Returns whether record `index` differs from the `known` fingerprint only in the URLs of its attachments. Also true
 * if no fingerprint is known (0) of a record with attachments: then it cannot be determined.
 */
export function isUrlRefresh(
  { hasLastingUrls }: Pick<TableCache, "hasLastingUrls">,
  page: RecordPage,
  index: number,
  known: bigint,
): boolean {
  if (hasLastingUrls || !page.hasAttachments(index)) return false;
  return known === 0n || ((known ^ page.fingerprint(index)) & FINGERPRINT_BITS) < MOST_HOURS;
}
