/** Lengths of time, ms, and days. */
export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** `2026-11-29`, UTC. */
export function utcDay(at: Date): string {
  return at.toISOString().slice(0, 10);
}
