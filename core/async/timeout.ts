/** Limits the wait for work that may hang. */
import { BasetideError, type ErrorCode } from "../errors";

/** Stands for the result when the time is up. */
const LATE = Symbol("late");

/**
 * Returns the result of `work` if it is available within `ms`. Later work continues in the background, and its failure
 * is ignored.
 *
 * @param late the code of the error to throw when the time is up, or a function that throws another or returns a result
 * @throws BasetideError of the code `late`; the errors of `work` and `late`
 */
export async function withTimeout<T, L = never>(
  ms: number,
  late: ErrorCode | (() => L),
  work: T | PromiseLike<T>,
): Promise<T | L> {
  const timeout = Promise.withResolvers<typeof LATE>();
  const timer = setTimeout(timeout.resolve, ms, LATE);
  try {
    const first = await Promise.race([work, timeout.promise]);
    if (first !== LATE) return first as T;
  } finally {
    clearTimeout(timer);
  }
  if (typeof late === "function") return late();
  throw new BasetideError(late, `No answer within ${ms} ms`);
}
