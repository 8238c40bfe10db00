/** Rebuilds tables in the background of rapid and live mode, when their schema requires it. */

import { BasetideError } from "../../../errors";
import type { TableSpec } from "../../../replica";
import type { TableOutcome } from "../../engine";
import { countedSizes, isRefusedChange, ProgressBoard, readerOfTable, rebuildTable } from "../../engine";
import { MOST_TABLES, type WorkKind } from "../../pacing";
import { type SyncSession, tablesOf, whileReading } from "./sync-session";

export interface RebuildWatch {
  /** Called when a rebuild begins; the returned function is called when the table is live. */
  onBegin(tableId: string): (outcome: TableOutcome) => Promise<void> | void;
  onFailure(tableId: string, error: BasetideError): void;
}

/**
 * The tables that must be rebuilt, a few at once, with at least half of the requests. A table that has been read and
 * waits until queries release its live table does not delay the others.
 */
export function rebuilding(session: SyncSession, watch: RebuildWatch): WorkKind {
  const { input, schemaTracker, split } = session;
  const { problems, failing, builds } = input.cache;
  let board: ProgressBoard | undefined;
  const reading = new Set<string>();
  // Builds that sweeps have left are read again: the recent-writes log is trimmed without regard to them here.
  builds.clear();
  const leave = (tableId: string) => {
    reading.delete(tableId);
    if (reading.size === 0) board = undefined;
  };

  async function run(spec: TableSpec): Promise<void> {
    const { tableId } = spec;
    const { live } = schemaTracker.table(tableId);
    const begunAt = performance.now();
    board ??= boardOf(session, schemaTracker.rebuild);
    const shown = board;
    shown.begin(spec);
    reading.add(tableId);
    const onWaiting = () => {
      leave(tableId);
      shown.waiting(tableId);
      problems.buildWaits(tableId);
    };
    try {
      await rebuild(session, spec, shown, watch, onWaiting);
    } catch (error) {
      // Rows go on into the old shape.
      if (!isRefusedChange(error) || !live || live.spec.isDamaged) throw error;
      schemaTracker.postpone(tableId, error, performance.now() - begunAt);
      watch.onFailure(tableId, error);
    } finally {
      leave(tableId);
    }
  }

  return {
    most: MOST_TABLES,
    tables: tablesOf(session.background),
    isAside: (tableId) => !reading.has(tableId),
    *items() {
      let isDue = false;
      for (const spec of schemaTracker.rebuild) {
        const { tableId } = spec;
        const dueInMs = Math.max(schemaTracker.postponedMs(tableId), failing.dueInMs(tableId));
        isDue ||= dueInMs <= 0;
        yield { id: tableId, dueInMs, run: () => run(spec) };
      }
      split.hurry(isDue || [...reading].some((id) => !failing.has(id)));
    },
    onFailure(tableId, error, pauseMs) {
      watch.onFailure(tableId, error);
      problems.buildFailed(tableId, error, pauseMs);
    },
  };
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
  const { failing } = session.input.cache;
  using watched = readerOfTable(session.background.reader, source, failing, () =>
    watch.onFailure(tableId, new BasetideError("source_timeout")),
  );
  const outcome = await whileReading(session, tableId, () =>
    rebuildTable({ ...session.background, reader: watched.reader, onProgress }, source, spec, onWaiting),
  );
  board.done(tableId);
  await done(outcome);
}

function boardOf({ input }: SyncSession, specs: TableSpec[]): ProgressBoard {
  const rebuilt = new Map(specs.map((spec) => [spec.tableId, spec]));
  const report = { kind: "rebuild" as const, startedAt: new Date() };
  return new ProgressBoard(report, rebuilt, countedSizes(input.base.tables), input.onProgress);
}
