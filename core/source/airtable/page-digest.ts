/**
 * Returns 53 bits of the hash of a page's text. A number, and not a bigint, because each request compares several: a bigint
 * is an object of the heap wherever it is read.
 */
export function pageDigest(text: Uint8Array): number {
  return Number(Bun.hash.wyhash(text) >> 11n);
}
