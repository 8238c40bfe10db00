/** Waits in tests: never for a fixed time, always for a condition with a deadline. Unless a test sets it, the deadline is later on a slow machine. */
import { slowness } from "./machine-speed";

/** The longest wait, unless a test sets another, in ms. */
const TIMEOUT_MS = 20_000;
/** The pause between two checks, in ms, and its share of the time waited so far: most checks query a database. */
const SHORTEST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 150;
const PAUSE_SHARE = 0.05;

/**
 * Calls `condition` until its result is truthy, and returns the result.
 *
 * @param options.what names the condition in the error: "the table appears"
 * @throws Error at the deadline, with `what` and the last result; an error of `condition` is thrown at once, except
 *   with `retryErrors`, where only the last one is thrown
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: { what: string; timeoutMs?: number; intervalMs?: number; retryErrors?: boolean },
): Promise<Exclude<T, false | null | undefined | 0 | "">> {
  const { what, timeoutMs = Math.round(TIMEOUT_MS * slowness()), intervalMs, retryErrors = false } = options;
  const from = Date.now();
  const deadline = from + timeoutMs;
  let last: unknown;
  do {
    try {
      const answer = await condition();
      if (answer) return answer as Exclude<T, false | null | undefined | 0 | "">;
      last = answer;
    } catch (error) {
      if (!retryErrors) throw error;
      last = error;
    }
    await Bun.sleep(intervalMs ?? pauseAfter(Date.now() - from));
  } while (Date.now() < deadline);
  throw new Error(`waited ${timeoutMs} ms until ${what}; last: ${Bun.inspect(last)}`, {
    cause: last instanceof Error ? last : undefined,
  });
}

function pauseAfter(waitedMs: number): number {
  return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, waitedMs * PAUSE_SHARE));
}
