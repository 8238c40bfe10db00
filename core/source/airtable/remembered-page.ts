/**
 * Recognizes the answer with a known page by the checksum that gzip adds to each text. Decompressing it would be most of
 * what an unchanged page costs.
 *
 * Two answers with the same records differ only in their offsets, `<list>/<place>`: the list's id is new in each sweep,
 * but known from the first page on, and the place depends on the records. So the whole text is known beforehand, except
 * that of the first of several pages. If the source forms offsets in another way, the checksums differ, and the page is
 * decompressed.
 *
 * CRC-32 is linear: if two texts of the same length differ only in their ends, their checksums differ (XOR) as those of
 * the ends do.
 *
 * A changed page of the same length can have the same checksum, unless its change is one of up to 32 bits in a row: one in
 * four billion does. So a checksum is trusted for a limited time. Then the text is hashed again, with 53 bits.
 */
import type { RememberedPage } from "../types";
import type { TextChecksum } from "./received-body";

/** How long a checksum is trusted, ms: at least, and at most. The pages of a table take turns in between. */
const LEAST_TRUST_MS = 600_000;
const MOST_TRUST_MS = 900_000;

/** @param text of an answer whose offset is `offset` */
export function rememberPage(
  text: TextChecksum,
  offset: string | undefined,
  { digest, firstId }: Pick<RememberedPage, "digest" | "firstId">,
): RememberedPage {
  return {
    digest,
    firstId,
    place: offset?.slice(listOf(offset).length),
    length: text.length,
    checksum: text.crc32 ^ endChecksum(offset),
    until: performance.now() + LEAST_TRUST_MS + Math.random() * (MOST_TRUST_MS - LEAST_TRUST_MS),
  };
}

/**
 * Recognizes the answer to a request.
 *
 * @param before what is remembered of the page at the same place of the list
 * @param requested the offset that was requested
 * @returns the answer's own offset if it has the remembered page; `null` if it must be decompressed
 */
export function recognizedOffset(
  before: RememberedPage,
  text: TextChecksum,
  requested: string | undefined,
): string | undefined | null {
  const { place, length, checksum, until } = before;
  if (text.length !== length || performance.now() >= until) return null;
  const offset = place === undefined ? undefined : listOf(requested ?? "") + place;
  return (text.crc32 ^ endChecksum(offset)) === checksum ? offset : null;
}

/** The part of an offset that is the same in all answers of a list. */
function listOf(offset: string): string {
  return offset.slice(0, offset.lastIndexOf("/") + 1);
}

/** CRC-32 of the end of an answer, from its offset on. */
function endChecksum(offset: string | undefined): number {
  return offset === undefined ? 0 : Bun.hash.crc32(`${offset}"}`);
}
