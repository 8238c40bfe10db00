/**
 * Beside rapid turns and live rounds, all tables are swept one by one, pass after pass.
 *
 * One table at a time, so that each is read once per pass. A pass may take longer than a lease, which then ends between
 * two tables; where the pass stands is remembered from lease to lease.
 */

import { linkedAbort, wait } from "../../../async";
import type { Base, RunReport } from "../../../control/bases";
import { asBasetideError, type BasetideError, isBasetideError } from "../../../errors";
import { agoMs } from "../../../postgres";
import {
  isWholeBases,
  mayMeanOldSchema,
  newReport,
  type Sweep,
  sweepTable,
  type TableOutcome,
  tableCounts,
  tellIssues,
} from "../../engine";
import { failurePauseMs } from "../../pacing";
import { type SweepPass, tableMemory } from "../../state";
import { type Together, whileReading } from "./sync-session";

const TICK_MS = 250;

export interface PassWatch {
  /** How long after the beginning of a pass the next one is due, ms. */
  everyMs: () => number;
  /** How long ago the last pass began where none is known here, ms. */
  lastAgoMs?: (() => number) | undefined;
  /** Is a pass to begin now, over all tables, whether it is due or one is under way? Asked often, true once. */
  isWanted?: () => boolean;
  onBegin?: (pass: SweepPass) => Promise<void> | void;
  onEnd?: (pass: SweepPass) => Promise<void> | void;
}

/** Passes over all tables, for ever; ends everything between two tables when the lease is over. */
export async function keepSweeping(together: Together, watch: PassWatch): Promise<void> {
  const { memory } = together.input;
  for (let failures = 0; ; ) {
    if (watch.isWanted?.() || (!memory.pass && isDue(together, watch))) await beginPass(together, watch);
    const { pass } = memory;
    if (pass && pass.remaining.length === 0) {
      await tellPass(together, pass);
      memory.pass = null;
      await watch.onEnd?.(pass);
    } else if (pass) {
      const error = await sweepNext(together, pass);
      failures = error ? failures + 1 : 0;
      if (error) await wait(failurePauseMs(failures, error), together.stop);
    } else await wait(Math.min(TICK_MS, Math.max(1, dueInMs(together, watch))), together.stop);
    endIfOver(together);
    together.stop.throwIfAborted();
  }
}

/** Ends everything if the lease is over, or given up to others, and no table is being read whole. */
export function endIfOver({ input, reading, fate }: Together): void {
  if (reading.size === 0 && (input.isOver() || input.isGivenUp?.())) fate.end();
}

async function beginPass({ input, shapes }: Together, watch: PassWatch): Promise<void> {
  const { memory } = input;
  const counts = { seen: 0, inserted: 0, updated: 0, deleted: 0, requests: 0, waitMs: 0 };
  const before = memory.pass;
  memory.pass = {
    ...(before ? { ...before, seen: 0 } : counts),
    startedAt: new Date(),
    remaining: shapes.tables.map(({ id }) => id),
  };
  memory.passBegunAt = performance.now();
  await watch.onBegin?.(memory.pass);
}

/** How long ago the base's last sweep began; Infinity: never. */
export function sweptAgoMs(base: Pick<Base, "sweep" | "clockAheadMs">): number {
  return base.sweep ? agoMs(base, base.sweep.startedAt) : Infinity;
}

function isDue(together: Together, watch: PassWatch): boolean {
  return dueInMs(together, watch) <= 0;
}

function dueInMs({ input }: Together, { everyMs, lastAgoMs }: PassWatch): number {
  const { passBegunAt } = input.memory;
  const begunMs = passBegunAt === null ? (lastAgoMs?.() ?? Infinity) : performance.now() - passBegunAt;
  return everyMs() - begunMs;
}

/** Sweeps the next table of the pass, or puts it off. @returns what it failed with */
async function sweepNext(together: Together, pass: SweepPass): Promise<BasetideError | undefined> {
  const { input, shapes, stop } = together;
  const tableId = pass.remaining[0]!;
  const { source, live, rebuild } = shapes.table(tableId);
  pass.remaining.shift();
  if (!source) return;
  pass.remaining.push(tableId);
  try {
    if (live && !rebuild) await sweepOfPass(together, pass, tableId);
    else await wait(TICK_MS, stop);
  } catch (caught) {
    const error = asBasetideError(caught);
    if (isBasetideError(error, "source_schema_changed")) return;
    if (mayMeanOldSchema(error)) await shapes.lookAgain();
    else if (isWholeBases(error)) throw error;
    input.reader.log.warn({ error, tableId }, "table not swept");
    await input.onRun({ ...newReport(), isBeside: true, startedAt: pass.startedAt, error });
    return error;
  }
}

/** One table of the pass. */
async function sweepOfPass(together: Together, pass: SweepPass, tableId: string): Promise<void> {
  const { beside } = together;
  const before = { ...beside.reader.counts };
  const outcome = await sweepInTurn(together, beside, tableId);
  if (!outcome) return;
  pass.requests += beside.reader.counts.requests - before.requests;
  pass.waitMs += beside.reader.counts.waitMs - before.waitMs;
  pass.inserted += outcome.inserted;
  pass.updated += outcome.updated;
  pass.deleted += outcome.deleted;
  pass.seen += outcome.seen;
  pass.remaining = pass.remaining.filter((id) => id !== tableId);
}

/**
 * Sweeps a live table, which two can never do at once: they would take each other's unseen records for gone. One for
 * the pass gives way to one that is not (`isUrgent`), and that then counts for the pass.
 *
 * @returns undefined when it gave way
 */
export async function sweepInTurn(
  together: Together,
  sweep: Sweep,
  tableId: string,
  isUrgent = false,
): Promise<TableOutcome | undefined> {
  const { input, shapes, sweeping } = together;
  for (let other = sweeping.get(tableId); other; other = sweeping.get(tableId)) {
    if (isUrgent) other.giveWay();
    await other.over;
    if (!isUrgent) return undefined;
  }
  using abort = linkedAbort(sweep.reader.stop);
  const { promise, resolve } = Promise.withResolvers<void>();
  let hasGivenWay = false;
  const giveWay = () => {
    if (isUrgent) return;
    hasGivenWay = true;
    abort.abort();
  };
  sweeping.set(tableId, { giveWay, over: promise });
  const begunFor = input.memory.pass;
  try {
    const { source, live } = shapes.table(tableId);
    if (!source || !live) return undefined;
    sweep.reader.tickets.renew();
    const one = { ...sweep, reader: { ...sweep.reader, stop: abort.signal } };
    const outcome = await whileReading(together, tableId, () =>
      sweepTable(one, source, tableMemory(input.memory, live)),
    );
    const { pass } = input.memory;
    if (isUrgent && pass && pass === begunFor) {
      pass.remaining = pass.remaining.filter((id) => id !== tableId);
      pass.seen += outcome.seen;
    }
    return outcome;
  } catch (error) {
    if (hasGivenWay && !sweep.reader.stop.aborted) return undefined;
    throw error;
  } finally {
    sweeping.delete(tableId);
    resolve();
  }
}

async function tellPass({ input, shapes }: Together, pass: SweepPass): Promise<void> {
  const { remaining: _, ...counts } = pass;
  const report: RunReport = {
    ...newReport(),
    ...counts,
    waitMs: Math.round(pass.waitMs),
    isBeside: true,
    completedAt: new Date(),
    tables: tableCounts(shapes.tables, input.memory, input.base),
  };
  await tellIssues(input.replica, report);
  await input.onRun(report);
}
