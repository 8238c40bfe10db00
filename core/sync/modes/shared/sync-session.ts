/**
 * What rapid and live mode have in common: something in front that people wait for, and beside it whole tables being
 * read, swept one by one or rebuilt.
 */

import type { Fate } from "../../../async";
import type { Base, Progress, RunReport } from "../../../control/bases";
import type { Replica } from "../../../replica";
import type { AskKind, Look, Reader, Shapes, Sweep, SyncInput, TableOutcome } from "../../engine";
import type { Lane, QuotaSplit } from "../../pacing";
import type { BaseMemory } from "../../state";

export interface TogetherInput {
  base: Base;
  replica: Replica;
  epoch: number;
  memory: BaseMemory;
  attachmentUrls?: SyncInput["attachmentUrls"];
  reader: Omit<Reader, "counts" | "onFirstRequest">;
  /** Has the lease lasted for long enough? */
  isOver: () => boolean;
  /** Is the base to make room for others, which wait while it fails? */
  isGivenUp?: () => boolean;
  /** Keeps the report of a sync, or of a sweep beside. */
  onRun: (report: RunReport) => Promise<void>;
  /** All tables' journals have been read, and every ticket in use been taken, after `at` (performance.now()). */
  onRead: (at: number) => Promise<void>;
  onProgress: (progress: Progress) => void;
  onShapeChange?: Look["onShapeChange"];
  onRequestedLook?: Look["onRequestedLook"];
  onMisplaced?: Look["onMisplaced"];
}

export interface Together<Input extends TogetherInput = TogetherInput> {
  input: Input;
  shapes: Shapes;
  split: QuotaSplit;
  fate: Fate;
  /** That of `fate`. */
  stop: AbortSignal;
  /** For what reads whole tables beside. */
  beside: Sweep;
  /** The readings of whole tables that are under way. */
  reading: Set<Reading>;
  /** The sweeps among them, by table id. */
  sweeping: Map<string, RunningSweep>;
  /** Told before a table is read whole; what is returned is told when that has been completed. */
  onReading?: (tableId: string) => Promise<(outcome: TableOutcome) => Promise<void>>;
}

/** A table that is being read whole. */
export interface Reading {
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
export function laneReader(
  { reader }: Pick<TogetherInput, "reader">,
  split: QuotaSplit,
  lane: Lane,
  stop: AbortSignal,
  kind: AskKind = "sweep",
): Reader {
  const counts = { requests: 0, waitMs: 0 };
  return { ...reader, ledger: split.lane(lane), stop, counts, onFirstRequest: () => {}, kind };
}

/** Runs `work`, which reads a table whole; the journal is kept for it. */
export async function whileReading(
  { reading, onReading }: Together,
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

/** Since when every journal and ticket that somebody reads a table by is in use, at most `at`. */
export function readSince({ reading }: Pick<Together, "reading">, at: number): number {
  return Math.min(at, ...[...reading].map(({ startedAt }) => startedAt));
}
