/**
 * Looks at the schema when the feed tells of a change of it, or when it is time; tables that may have another shape are
 * not worked on before.
 */

import { wait } from "../../../async";
import { asBasetideError } from "../../../errors";
import type { ReadAs } from "../../../replica";
import { isOutdated, isWholeBases, readAsNow } from "../../engine";
import { failurePauseMs } from "../../pacing";
import type { Live } from "./live";

const TICK_MS = 250;

/** Looks for ever. */
export async function keepCheckingSchema(live: Live): Promise<void> {
  const { schemaTracker, dirty, schemaNotifier, stop, batches, wake } = live;
  const named = new Map<string, ReadAs>();
  let compared: unknown[] = [];
  for (let failures = 0; ; ) {
    const { sequence } = dirty;
    const suspected = dirty.suspected();
    try {
      if (suspected.length > 0) await schemaTracker.refresh();
      else await schemaTracker.refreshIfDue();
      failures = 0;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (isWholeBases(error)) throw error;
      await batches.failed(error);
      await wait(failurePauseMs(++failures, error), stop);
      continue;
    }
    const shown = [live.input.cache.schema, schemaTracker.catalog];
    if (shown.some((one, index) => one !== compared[index])) nameOutdated(live, named);
    compared = shown;
    if (suspected.length > 0) {
      dirty.ackSuspects(sequence);
      live.settled();
      wake.notify();
    }
    forgetGone(live);
    await schemaNotifier.wait(TICK_MS, stop);
  }
}

/** What waits of tables that the source has no more, also what somebody had in hand when they went. */
function forgetGone({ dirty, schemaTracker, settled }: Live): void {
  const gone = dirty.waitingTables().filter((id) => !schemaTracker.table(id).source && !dirty.isSuspect(id));
  for (const id of gone) dirty.forgetTable(id);
  if (gone.length > 0) settled();
}

/**
 * Tables whose cells may be other than they were read are swept.
 *
 * @param named for what each was named last
 */
export function nameOutdated(
  { input, schemaTracker, dirty, wake }: Pick<Live, "input" | "schemaTracker" | "dirty" | "wake">,
  named: Map<string, ReadAs>,
): void {
  for (const [tableId, now] of readAsNow(input.cache, input.reader.connection)) {
    const { live: table, rebuild } = schemaTracker.table(tableId);
    // A rebuild reads all cells.
    if (!table || rebuild || !isOutdated(table.readAs, now)) {
      // It may come to be what it was named for once more.
      named.delete(tableId);
      continue;
    }
    if (Bun.deepEquals(named.get(tableId), now)) continue;
    named.set(tableId, now);
    dirty.addTable(tableId, dirty.durableCursor);
    wake.notify();
  }
}
