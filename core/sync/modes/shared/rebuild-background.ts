/** Rebuilds tables in the background of rapid and live mode, when their schema requires it. */

import { wait, waitCoarsely } from "../../../async";
import { asBasetideError, BasetideError, isBasetideError } from "../../../errors";
import type { TableSpec } from "../../../replica";
import type { TableOutcome } from "../../engine";
import {
  countedSizes,
  ProgressBoard,
  readerOfTable,
  rebuildTable,
  refusedPauseMs,
  tableFailed,
} from "../../engine";
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
  const { failing } = input.cache;
  const running = new Map<string, Promise<void>>();
  const reading = new Set<string>();
  // Builds that sweeps have left are read again: the recent-writes log is trimmed without regard to them here.
  input.cache.builds.clear();
  const attempt = async (spec: TableSpec, shown: ProgressBoard, onWaiting: () => void) => {
    const { tableId } = spec;
    const shape = schemaTracker.table(tableId);
    const begunAt = performance.now();
    try {
      await rebuild(session, spec, shown, watch, onWaiting);
      failing.read(tableId);
      problems.buildSucceeded(tableId);
    } catch (caught) {
      const { log } = input.reader;
      // An object of the customer's refuses the new shape: rows go on into the old one.
      const isRefused =
        isBasetideError(caught, "replica_refused") && shape.live && !shape.live.spec.isDamaged;
      const error = isRefused
        ? asBasetideError(caught)
        : await tableFailed({ schemaTracker, cache: input.cache, log }, tableId, shape, caught);
      if (!error) return;
      if (isRefused) schemaTracker.postpone(tableId, error);
      watch.onFailure(tableId, error);
      const pauseMs = isRefused
        ? refusedPauseMs(performance.now() - begunAt)
        : failing.has(tableId)
          ? failing.dueInMs(tableId)
          : failurePauseMs(1, error);
      problems.buildFailed(tableId, error, pauseMs);
      await wait(pauseMs, stop);
      schemaTracker.resume(tableId);
    }
  };
  try {
    for (;;) {
      stop.throwIfAborted();
      const spec = schemaTracker.rebuild.find(({ tableId }) => !running.has(tableId));
      // A table that fails leaves its place to others.
      const places = [...reading].filter((id) => !failing.has(id)).length;
      split.hurry(spec !== undefined || places > 0);
      if (!spec || places >= MOST_AT_ONCE) {
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
