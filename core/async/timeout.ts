/** Waiting for something that may hang, but not for ever. */
import { BasetideError, type ErrorCode } from "../errors";

/**
 * What `work` gives, if it does so in `ms`. Work that is later goes on by itself, and its failure is nobody's.
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
