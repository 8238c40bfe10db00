/**
 * Runs a schema check when the feed reports a schema change, or when one is due. Tables whose schema may have changed
 * are not worked on before.
 */

import { wait } from "../../../async";
import { asBasetideError } from "../../../errors";
import type { ReadAs } from "../../../replica";
import { isOutdated, isWholeBases, readAsNow } from "../../engine";
import { failurePauseMs } from "../../pacing";
import type { Live } from "./live";

const TICK_MS = 250;

/** Checks the schema forever. */
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

/**
 * Acknowledges the entries of tables that the source no longer has, including those requeued after the tables went.
 */
function forgetGone({ dirty, schemaTracker, settled }: Live): void {
  const gone = dirty.waitingTables().filter((id) => !schemaTracker.table(id).source && !dirty.isSuspect(id));
  for (const id of gone) dirty.forgetTable(id);
  if (gone.length > 0) settled();
}

/**
 * Requests sweeps of tables whose cells may have changed since they were read.
 *
 * @param named the definitions that each table was last named for
 */
export function nameOutdated(
  { input, schemaTracker, dirty, wake }: Pick<Live, "input" | "schemaTracker" | "dirty" | "wake">,
  named: Map<string, ReadAs>,
): void {
  for (const [tableId, now] of readAsNow(input.cache, input.reader.connection)) {
    const { live: table, rebuild } = schemaTracker.table(tableId);
    // A rebuild reads all cells.
    if (!table || rebuild || !isOutdated(table.readAs, now)) {
      // The same definitions may require a sweep again later.
      named.delete(tableId);
      continue;
    }
    if (Bun.deepEquals(named.get(tableId), now)) continue;
    named.set(tableId, now);
    dirty.addTable(tableId, dirty.durableCursor);
    wake.notify();
  }
}
