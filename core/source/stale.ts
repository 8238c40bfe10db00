/**
 * A call that failed because a kept connection had been closed by the source: as a rule before the call was sent, which
 * nobody can know. What may be asked twice is asked again at once, as one more call of the quota.
 */
import { isBasetideError } from "../errors";

/** The reason that such an error gives. */
export const STALE_CONNECTION = "stale_connection";

export function isStale(error: unknown): boolean {
  return isBasetideError(error, "source_unavailable") && error.details.reason === STALE_CONNECTION;
}

/** Runs `work`, which is to read only, and once more if its connection was stale; it waits for the quota each time. */
export async function retryIfStale<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isStale(error)) throw error;
    return await work();
  }
}
