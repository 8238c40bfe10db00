/** Limits the wait for work that may hang. */
import { BasetideError, type ErrorCode } from "../errors";

/**
 * Returns the result of `work` if it is available within `ms`. Later work continues in the background, and its failure
 * is ignored.
 *
 * @throws BasetideError `code` when the time is up
 */
export async function withTimeout<T>(ms: number, code: ErrorCode, work: Promise<T>): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new BasetideError(code, `No answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
