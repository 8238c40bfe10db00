/**
 * Runs a schema check when the feed reports a schema change, or when one is due. Tables whose schema may have changed
 * are not worked on before.
 */

import type { ReadAs } from "../../../replica";
import type { SourceConnection } from "../../../source";
import { isOutdated, readAsNow, type SchemaTracker } from "../../engine";
import { periodic, TICK_MS, type WorkKind } from "../../pacing";
import type { BaseCache, DirtySet } from "../../state";
import type { LiveBatches } from "./batches";

interface SchemaChecking {
  schemaTracker: Pick<SchemaTracker, "refresh" | "refreshIfDue" | "table" | "tables" | "catalog" | "refusal">;
  cache: Pick<BaseCache, "schema" | "schemaError" | "failing">;
  connection: Pick<SourceConnection, "changeFeed">;
  dirty: DirtySet;
  batches: Pick<LiveBatches, "failed" | "accepted">;
}

/** The schema, which is checked at once if a table is suspect. */
export function checkingSchema(checking: SchemaChecking): WorkKind {
  const { schemaTracker, cache, dirty, batches } = checking;
  const named = new Map<string, ReadAs>();
  let compared: unknown[] = [];
  let reported: unknown;
  async function run(): Promise<boolean> {
    const { sequence } = dirty;
    const suspected = dirty.suspected();
    cache.failing.keepOnly(schemaTracker.tables);
    dirty.setAside(cache.failing.ids);
    try {
      if (suspected.length > 0) await schemaTracker.refresh();
      else await schemaTracker.refreshIfDue();
    } catch (error) {
      if (!cache.schemaError) throw error;
      // It says why with the base. Records are read again by the known schema meanwhile.
      dirty.wake.notify();
      return false;
    }
    // Each attempt has an error of its own.
    const { refusal } = schemaTracker;
    if (refusal && refusal !== reported) await batches.failed(refusal);
    if (!refusal && reported) batches.accepted();
    reported = refusal;
    const shown = [cache.schema, schemaTracker.catalog];
    if (shown.some((one, index) => one !== compared[index])) nameOutdated(checking, named);
    compared = shown;
    if (suspected.length > 0) dirty.ackSuspects(sequence);
    forgetGone(checking);
    return true;
  }
  return {
    ...periodic(run, () => (dirty.suspected().length > 0 ? 0 : TICK_MS)),
    onFailure: (_, error) => batches.failed(error),
  };
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
function nameOutdated(
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
