/**
 * Retries calls that failed because the source had closed an idle connection: usually before the call was sent, which
 * cannot be verified. Calls that are safe to repeat are repeated at once, as one more call of the quota.
 */
import { isBasetideError } from "../errors";

/** The reason in such an error. */
export const STALE_CONNECTION = "stale_connection";

export function isStale(error: unknown): boolean {
  return isBasetideError(error, "source_unavailable") && error.details.reason === STALE_CONNECTION;
}

/**
 * Runs `work`, which must only read, and runs it once more if its connection was stale; it waits for the quota each
 * time.
 */
export async function retryIfStale<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isStale(error)) throw error;
    return await work();
  }
}
