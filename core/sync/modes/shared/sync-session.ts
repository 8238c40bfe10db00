/**
 * The sync session of rapid and live mode: foreground work that people wait for, and background work that reads,
 * sweeps or rebuilds whole tables.
 */

import type { Notifier, TaskGroup } from "../../../async";
import {
  type AskKind,
  type Reader,
  type SchemaTracker,
  type Sweep,
  type SyncInput,
  type TableOutcome,
  tableFailed,
} from "../../engine";
import type { RunReport } from "../../host";
import { type QuotaSplit, Scheduler, type WorkKind, type WorkPriority } from "../../pacing";

export interface SyncSessionInput
  extends Omit<SyncInput, "schemaPollMs" | "isForced" | "restsAfter" | "next"> {
  /** Returns whether the lease must be renewed. */
  isOver: () => boolean;
  /** Returns whether the base should make room for others, which wait while it fails. */
  isGivenUp?: () => boolean;
  /** Saves the report of a sync, or of a background scan. */
  onRun: (report: RunReport) => Promise<void>;
  /**
   * Called after the recent-writes logs of all tables have been read, and every read version in use was taken, after
   * `at` (performance.now()).
   */
  onRead: (at: number) => Promise<void>;
}

export interface SyncSession<Input extends SyncSessionInput = SyncSessionInput> {
  input: Input;
  schemaTracker: SchemaTracker;
  split: QuotaSplit;
  taskGroup: TaskGroup;
  /** The signal of `taskGroup`. */
  stop: AbortSignal;
  /** For background work that reads whole tables. */
  background: Sweep;
  /** The complete reads of tables that are running. */
  reading: Set<TableReading>;
  /** The sweeps among them, by table id. */
  sweeping: Map<string, RunningSweep>;
  /** Called before a table is read completely; the returned function is called when that has completed. */
  onReading?: (tableId: string) => Promise<(outcome: TableOutcome) => Promise<void>>;
}

/** A table that is being read completely. */
interface TableReading {
  tableId: string;
  /** performance.now() */
  startedAt: number;
}

interface RunningSweep {
  /** Asks the sweep to make way for an urgent one; does nothing if it is urgent itself. */
  giveWay(): void;
  over: Promise<void>;
}

/** Returns a reader for one priority of the split, with its own counts. */
export function readerWithPriority(
  { reader }: Pick<SyncSessionInput, "reader">,
  split: QuotaSplit,
  priority: WorkPriority,
  stop: AbortSignal,
  kind: AskKind = "sweep",
): Reader {
  const counts = { requests: 0, waitMs: 0 };
  return { ...reader, limiter: split.limiterFor(priority), stop, counts, kind };
}

/** Runs `work`, which reads a table completely; the recent-writes log is kept for it meanwhile. */
export async function whileReading(
  { reading, onReading }: SyncSession,
  tableId: string,
  work: () => Promise<TableOutcome>,
): Promise<TableOutcome> {
  const one = { tableId, startedAt: performance.now() };
  reading.add(one);
  try {
    const completed = await onReading?.(tableId);
    const outcome = await work();
    await completed?.(outcome);
    return outcome;
  } finally {
    reading.delete(one);
  }
}

/**
 * Returns the start of the oldest complete read of a table that is running, at most `at`: the recent-writes log is
 * needed from then on.
 */
export function readSince({ reading }: Pick<SyncSession, "reading">, at: number): number {
  return Math.min(at, ...[...reading].map(({ startedAt }) => startedAt));
}

/** Ends the session if the lease is over or was given up to others, and no table is being read completely. */
function endIfOver({ input, reading, taskGroup }: SyncSession): void {
  if (reading.size === 0 && (input.isOver() || input.isGivenUp?.())) taskGroup.end();
}

/** @param wake notified when there may be more to do */
export function schedulerOf(session: SyncSession, wake: Notifier, kinds: WorkKind[]): Scheduler {
  const { stop, taskGroup } = session;
  return new Scheduler(
    { stop, wake, end: (error) => taskGroup.end(error), onTurn: () => endIfOver(session) },
    kinds,
  );
}

/** Records failures of tables that are worked on one by one. */
export function tablesOf({
  schemaTracker,
  cache,
  reader: { log },
}: Pick<Sweep, "schemaTracker" | "cache" | "reader">): NonNullable<WorkKind["tables"]> {
  return {
    failing: cache.failing,
    begin(tableId) {
      const shape = schemaTracker.table(tableId);
      return (caught) => tableFailed({ schemaTracker, cache, log }, tableId, shape, caught);
    },
  };
}
