/**
 * Recognizes calls that failed because the source had closed an idle connection: usually before the call was sent,
 * which cannot be verified.
 */
import { isBasetideError } from "../errors";

/** The reason in such an error. */
export const STALE_CONNECTION = "stale_connection";

export function isStale(error: unknown): boolean {
  return isBasetideError(error, "source_unavailable") && error.details.reason === STALE_CONNECTION;
}
