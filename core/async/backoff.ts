/** Pauses between attempts. */

/** Doubles from `firstMs` to `maxMs` with each attempt (from 1), and is jittered by half. */
export function jittered(attempt: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** (attempt - 1)) * (0.5 + Math.random());
}
