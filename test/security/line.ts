/**
 * The attackers' line: all of them together send what a gigabit a second carries. Over loopback they would send ten times
 * as much, which no service on such a line receives, and which takes its copying alone a whole core.
 */
const BYTES_PER_MS = 125_000;
/** What is sent at once, bytes. */
export const PIECE_BYTES = 64 * 1024;

/** When everything so far has been sent, ms on the monotonic clock. */
let freeAt = 0;

/** Resolves when the line has room for a piece of this many bytes, which then counts as sent. */
export async function roomOnLine(bytes: number): Promise<void> {
  freeAt = Math.max(freeAt, performance.now()) + bytes / BYTES_PER_MS;
  const waitMs = freeAt - performance.now();
  if (waitMs >= 1) await Bun.sleep(waitMs);
}
