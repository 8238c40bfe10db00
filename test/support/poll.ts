/** Waiting in tests: never for a time, always for a condition with a deadline. */

/** Longest wait and the pause between two looks, unless a test says otherwise, in ms. */
const TIMEOUT_MS = 10_000;
const INTERVAL_MS = 10;

/**
 * Asks `condition` again and again until its answer is truthy, and returns that.
 *
 * @param options.what what is waited for, for the error: "the table appears"
 * @throws Error at the deadline, saying what was waited for and the last answer; the error of `condition` is not
 *   caught, but for the last one where `condition` keeps failing with `retryErrors`
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
