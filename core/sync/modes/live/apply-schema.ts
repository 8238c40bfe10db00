/**
 * Runs a schema check when the feed reports a schema change, or when one is due. Tables whose schema may have changed
 * are not worked on before.
 */

import { wait } from "../../../async";
import { asBasetideError } from "../../../errors";
import type { ReadAs } from "../../../replica";
import type { SourceConnection } from "../../../source";
import { isOutdated, isWholeBases, readAsNow, type SchemaTracker } from "../../engine";
import { failurePauseMs } from "../../pacing";
import type { BaseCache, DirtySet } from "../../state";
import type { LiveBatches } from "./batches";

const TICK_MS = 250;

export interface SchemaChecking {
  schemaTracker: Pick<SchemaTracker, "refresh" | "refreshIfDue" | "table" | "tables" | "catalog" | "refusal">;
  cache: Pick<BaseCache, "schema" | "schemaError" | "failing">;
  connection: Pick<SourceConnection, "changeFeed">;
  dirty: DirtySet;
  batches: Pick<LiveBatches, "failed" | "accepted">;
  stop: AbortSignal;
}

/** Checks the schema forever. */
export async function keepCheckingSchema(checking: SchemaChecking): Promise<void> {
  const { schemaTracker, cache, dirty, batches, stop } = checking;
  const named = new Map<string, ReadAs>();
  let compared: unknown[] = [];
  let reported: unknown;
  for (let failures = 0; ; ) {
    const { sequence } = dirty;
    const suspected = dirty.suspected();
    cache.failing.keepOnly(schemaTracker.tables);
    dirty.setAside(cache.failing.ids);
    try {
      if (suspected.length > 0) await schemaTracker.refresh();
      else await schemaTracker.refreshIfDue();
      failures = 0;
      // Each attempt has an error of its own.
      const { refusal } = schemaTracker;
      if (refusal && refusal !== reported) await batches.failed(refusal);
      if (!refusal && reported) batches.accepted();
      reported = refusal;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (isWholeBases(error)) throw error;
      if (!cache.schemaError) await batches.failed(error);
      await wait(failurePauseMs(++failures, error), stop);
      continue;
    }
    const shown = [cache.schema, schemaTracker.catalog];
    if (shown.some((one, index) => one !== compared[index])) nameOutdated(checking, named);
    compared = shown;
    if (suspected.length > 0) dirty.ackSuspects(sequence);
    forgetGone(checking);
    await dirty.wake.schemaCheck.wait(TICK_MS, stop);
  }
}

/**
 * Acknowledges the entries of tables that the source no longer has, including those requeued after the tables went.
 */
function forgetGone({ dirty, schemaTracker }: SchemaChecking): void {
  for (const id of dirty.waitingTables()) {
    const { source, isLeftOut } = schemaTracker.table(id);
    if (!source && !isLeftOut && !dirty.isSuspect(id)) dirty.forgetTable(id);
  }
}

/**
 * Requests sweeps of tables whose cells may have changed since they were read.
 *
 * @param named the definitions that each table was last named for
 */
export function nameOutdated(
  {
    cache,
    connection,
    schemaTracker,
    dirty,
  }: Pick<SchemaChecking, "cache" | "connection" | "schemaTracker" | "dirty">,
  named: Map<string, ReadAs>,
): void {
  for (const [tableId, now] of readAsNow(cache, connection)) {
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
  }
}
