/**
 * What rapid and live mode have in common: something in front that people wait for, and beside it whole tables being
 * read, swept one by one or rebuilt.
 */

import type { TaskGroup } from "../../../async";
import type { Base, Progress, RunReport } from "../../../control/bases";
import type { Replica } from "../../../replica";
import type {
  AskKind,
  Reader,
  SchemaTracker,
  SchemaTrackerOptions,
  Sweep,
  SyncInput,
  TableOutcome,
} from "../../engine";
import type { QuotaSplit, WorkPriority } from "../../pacing";
import type { BaseCache } from "../../state";

export interface SyncSessionInput {
  base: Base;
  replica: Replica;
  epoch: number;
  cache: BaseCache;
  attachmentUrls?: SyncInput["attachmentUrls"];
  reader: Omit<Reader, "counts" | "onFirstRequest">;
  /** Has the lease lasted for long enough? */
  isOver: () => boolean;
  /** Is the base to make room for others, which wait while it fails? */
  isGivenUp?: () => boolean;
  /** Keeps the report of a sync, or of a sweep beside. */
  onRun: (report: RunReport) => Promise<void>;
  /** All tables' recent-writes logs have been read, and every read version in use been taken, after `at` (performance.now()). */
  onRead: (at: number) => Promise<void>;
  onProgress: (progress: Progress) => void;
  onShapeChange?: SchemaTrackerOptions["onShapeChange"];
  onRequestedSchemaCheck?: SchemaTrackerOptions["onRequestedSchemaCheck"];
  onMisplaced?: SchemaTrackerOptions["onMisplaced"];
}

export interface SyncSession<Input extends SyncSessionInput = SyncSessionInput> {
  input: Input;
  schemaTracker: SchemaTracker;
  split: QuotaSplit;
  taskGroup: TaskGroup;
  /** That of `taskGroup`. */
  stop: AbortSignal;
  /** For what reads whole tables beside. */
  background: Sweep;
  /** The readings of whole tables that are under way. */
  reading: Set<TableReading>;
  /** The sweeps among them, by table id. */
  sweeping: Map<string, RunningSweep>;
  /** Told before a table is read whole; what is returned is told when that has been completed. */
  onReading?: (tableId: string) => Promise<(outcome: TableOutcome) => Promise<void>>;
}

/** A table that is being read whole. */
export interface TableReading {
  tableId: string;
  /** performance.now() */
  startedAt: number;
}

export interface RunningSweep {
  /** Somebody else is to sweep the table; does nothing where the sweep is urgent itself. */
  giveWay(): void;
  over: Promise<void>;
}

/** A reader for one lane of the split, with counts of its own. */
export function readerWithPriority(
  { reader }: Pick<SyncSessionInput, "reader">,
  split: QuotaSplit,
  priority: WorkPriority,
  stop: AbortSignal,
  kind: AskKind = "sweep",
): Reader {
  const counts = { requests: 0, waitMs: 0 };
  return { ...reader, limiter: split.limiterFor(priority), stop, counts, onFirstRequest: () => {}, kind };
}

/** Runs `work`, which reads a table whole; the recent-writes log is kept for it. */
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

/** Since when every recent-writes log and read version that somebody reads a table by is in use, at most `at`. */
export function readSince({ reading }: Pick<SyncSession, "reading">, at: number): number {
  return Math.min(at, ...[...reading].map(({ startedAt }) => startedAt));
}
