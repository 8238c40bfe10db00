/** Reads `Retry-After`: a header of another server must not make us wait for as long as it likes. */

/** Seconds, also with a fraction. */
const SECONDS = /^\s*\d+(\.\d+)?\s*$/;

/**
 * Returns how long the header asks to wait, ms, and never longer than `mostMs`; undefined without a header, or if it is
 * neither a number of seconds nor a date. A date in the past asks for no wait.
 */
export function retryAfterMs(header: string | null, mostMs: number): number | undefined {
  if (header === null) return undefined;
  const ms = SECONDS.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(mostMs, Math.max(0, Math.round(ms)));
}
