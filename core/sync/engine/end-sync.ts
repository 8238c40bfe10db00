/** Tells readers of `_sync_meta` that no sync is under way, when one has ended without completing. */
import { markSyncEnded, type Replica } from "../../replica";

/** A replica that does not answer within this keeps nobody from stopping, ms. */
const PATIENCE_MS = 1000;

/**
 * Never fails: where nothing can be told now, the next lease of the base says it as it begins.
 *
 * @param started the note that the sync has started, which may still be on its way
 */
export async function endSync(replica: Replica, epoch: number, started?: Promise<void>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, PATIENCE_MS);
  const told = Promise.resolve(started)
    .catch(() => {})
    .then(() => markSyncEnded(replica, epoch))
    .catch(() => {});
  await Promise.race([told, late]);
  clearTimeout(timer);
}
