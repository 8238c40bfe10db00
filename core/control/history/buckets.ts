/** Returns the beginnings of `count` buckets, the last of which contains `now`. */
export function bucketsUntil(now: Date, bucketMs: number, count: number): Date[] {
  const lastMs = Math.floor(now.getTime() / bucketMs) * bucketMs;
  return Array.from({ length: count }, (_, index) => new Date(lastMs - (count - 1 - index) * bucketMs));
}
