/** Rebuilds tables in the background of rapid and live mode, when their schema requires it. */

import { wait, waitCoarsely } from "../../../async";
import { asBasetideError, type BasetideError, isBasetideError } from "../../../errors";
import type { TableSpec } from "../../../replica";
import type { TableOutcome } from "../../engine";
import { isWholeBases, mayMeanOldSchema, ProgressBoard, rebuildTable } from "../../engine";
import { failurePauseMs } from "../../pacing";
import { type SyncSession, whileReading } from "./sync-session";

const TICK_MS = 250;
/** Tables that are rebuilt at once: the rate should be the limit, and not the source's response time. */
const MOST_AT_ONCE = 4;

export interface RebuildWatch {
  /** Called when a rebuild begins; the returned function is called when the table is live. */
  onBegin(tableId: string): (outcome: TableOutcome) => Promise<void> | void;
  onFailure(tableId: string, error: BasetideError): void;
}

/**
 * Rebuilds the tables that need it, a few at once, with at least half of the requests. A table that has been read and
 * waits until queries release its live table does not delay the others.
 */
export async function keepRebuilding(session: SyncSession, watch: RebuildWatch): Promise<void> {
  const { input, schemaTracker, split, stop, taskGroup } = session;
  const { problems } = input.cache;
  let board: ProgressBoard | undefined;
  /** Failures in a row, by table: a table that fails often delays no other. */
  const failures = new Map<string, number>();
  const running = new Map<string, Promise<void>>();
  const reading = new Set<string>();
  // Builds that sweeps have left are read again: the recent-writes log is trimmed without regard to them here.
  input.cache.builds.clear();
  const attempt = async (spec: TableSpec, shown: ProgressBoard, onWaiting: () => void) => {
    try {
      await rebuild(session, spec, shown, watch, onWaiting);
      failures.delete(spec.tableId);
      problems.buildSucceeded(spec.tableId);
    } catch (caught) {
      const error = asBasetideError(caught);
      if (mayMeanOldSchema(error)) await schemaTracker.refresh();
      else if (isWholeBases(error)) throw error;
      input.reader.log.warn({ error, tableId: spec.tableId }, "rebuilding a table failed");
      if (isBasetideError(error, "replica_refused")) schemaTracker.postpone(spec.tableId);
      watch.onFailure(spec.tableId, error);
      const inARow = (failures.get(spec.tableId) ?? 0) + 1;
      failures.set(spec.tableId, inARow);
      const pauseMs = failurePauseMs(inARow, error);
      problems.buildFailed(spec.tableId, error, pauseMs);
      await wait(pauseMs, stop);
      schemaTracker.resume(spec.tableId);
    }
  };
  try {
    for (;;) {
      stop.throwIfAborted();
      const spec = schemaTracker.rebuild.find(({ tableId }) => !running.has(tableId));
      split.hurry(spec !== undefined || reading.size > 0);
      if (!spec || reading.size === MOST_AT_ONCE) {
        if (running.size === 0) board = undefined;
        await waitCoarsely(TICK_MS, stop);
        continue;
      }
      const { tableId } = spec;
      board ??= boardOf(session, schemaTracker.rebuild);
      board.begin(spec);
      reading.add(tableId);
      const shown = board;
      const onWaiting = () => {
        reading.delete(tableId);
        shown.waiting(tableId);
        problems.buildWaits(tableId);
      };
      const attempted = attempt(spec, shown, onWaiting)
        .catch((error: unknown) => taskGroup.end(error))
        .finally(() => {
          reading.delete(tableId);
          running.delete(tableId);
        });
      running.set(tableId, attempted);
    }
  } finally {
    await Promise.all(running.values());
  }
}

async function rebuild(
  session: SyncSession,
  spec: TableSpec,
  board: ProgressBoard,
  watch: RebuildWatch,
  onWaiting: () => void,
): Promise<void> {
  const { tableId } = spec;
  const { source } = session.schemaTracker.table(tableId);
  if (!source) return;
  const done = watch.onBegin(tableId);
  const onProgress = (records: number) => board.records(tableId, records);
  const outcome = await whileReading(session, tableId, () =>
    rebuildTable({ ...session.background, onProgress }, source, spec, onWaiting),
  );
  board.done(tableId);
  await done(outcome);
}

function boardOf({ input }: SyncSession, specs: TableSpec[]): ProgressBoard {
  const rebuilt = new Map(specs.map((spec) => [spec.tableId, spec]));
  const report = { kind: "rebuild" as const, startedAt: new Date() };
  return new ProgressBoard(report, rebuilt, input.base.tables, input.onProgress);
}
