/** Requests to find what clients have written where nothing says which records that was. */
import type { Db } from "../../context";

export async function requestCatchUp(db: Db, baseId: string): Promise<void> {
  await db`update bases set catch_up_requested_at = now() where id = ${baseId}`;
}

/** What was requested until then has been found. */
export async function settleCatchUp(db: Db, baseId: string, requestedAt: Date): Promise<void> {
  // A Date has no microseconds.
  await db`
    update bases set catch_up_requested_at = null
    where id = ${baseId} and date_trunc('milliseconds', catch_up_requested_at) <= ${requestedAt}`;
}
