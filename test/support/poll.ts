/** Waits in tests: never for a fixed time, always for a condition with a deadline. */

/** The longest wait and the pause between two checks, unless a test sets others, in ms. */
const TIMEOUT_MS = 10_000;
const INTERVAL_MS = 10;

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
  const { what, timeoutMs = TIMEOUT_MS, intervalMs = INTERVAL_MS, retryErrors = false } = options;
  const deadline = Date.now() + timeoutMs;
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
    await Bun.sleep(intervalMs);
  } while (Date.now() < deadline);
  throw new Error(`waited ${timeoutMs} ms until ${what}; last: ${Bun.inspect(last)}`, {
    cause: last instanceof Error ? last : undefined,
  });
}
