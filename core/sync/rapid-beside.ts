/**
 * What goes on beside the looks of rapid mode: tables are rebuilt where their shape asks for it, and swept one by one.
 */
import type { RunReport } from "../control";
import { asBasetideError, isBasetideError } from "../errors";
import type { TableSpec } from "../replica";
import { wait } from "../wait";
import { type SweepPass, tableMemory } from "./memory";
import { failurePauseMs } from "./pauses";
import { ProgressBoard } from "./progress";
import type { Rapid } from "./rapid";
import { rebuildTable } from "./rebuild";
import { sweepTable } from "./sweep";
import { isWholeBases, mayMeanOldSchema, newReport } from "./sync-base";
import { tableCounts, tellIssues } from "./tell";

/** While a table is rebuilt, one request in so many goes beside; else as many as the split was made with. */
const REBUILD_EVERY = 2;
/** A small base is not swept more often than this. */
const MIN_PASS_INTERVAL_MS = 1000;
const TICK_MS = 250;

/** Rebuilds what is to be rebuilt, one table after the other. */
export async function keepRebuilding(rapid: Rapid): Promise<void> {
  const { input, shapes, split, stop } = rapid;
  const usual = split.besideEvery;
  let board: ProgressBoard | undefined;
  for (let failures = 0; ; ) {
    const [spec] = shapes.rebuild;
    if (!spec) {
      split.besideEvery = usual;
      board = undefined;
      await wait(TICK_MS, stop);
      continue;
    }
    split.besideEvery = REBUILD_EVERY;
    board ??= boardOf(rapid, shapes.rebuild);
    board.begin(spec);
    const startedAt = performance.now();
    try {
      await rebuild(rapid, spec, board, startedAt);
      failures = 0;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (mayMeanOldSchema(error)) await shapes.lookAgain();
      else if (isWholeBases(error)) throw error;
      input.reader.log.warn({ error, tableId: spec.tableId }, "table not rebuilt");
      rapid.turns.failed(spec.tableId, error);
      await wait(failurePauseMs(++failures), stop);
    }
  }
}

async function rebuild(
  rapid: Rapid,
  spec: TableSpec,
  board: ProgressBoard,
  startedAt: number,
): Promise<void> {
  const { input, shapes, turns, beside } = rapid;
  const { source } = shapes.table(spec.tableId);
  if (!source) return;
  // What is read from now on is newer than this.
  const from = input.memory.sourceClock.now();
  const onProgress = (records: number) => board.records(spec.tableId, records);
  const outcome = await whileReading(rapid, () => rebuildTable({ ...beside, onProgress }, source, spec));
  if (outcome.isHeld) return;
  if (from !== undefined) input.memory.lookedUntil.set(spec.tableId, from);
  board.done(spec.tableId);
  turns.looked(spec.tableId, { ...outcome, askedAt: startedAt }, "rebuild");
}

function boardOf({ input }: Rapid, specs: TableSpec[]): ProgressBoard {
  const rebuilt = new Map(specs.map((spec) => [spec.tableId, spec]));
  const report = { kind: "rebuild" as const, startedAt: new Date() };
  return new ProgressBoard(report, rebuilt, input.base.tables, input.onProgress);
}

/** Passes over all tables, for ever; ends everything between two tables when the lease is over. */
export async function keepSweeping(rapid: Rapid): Promise<void> {
  const { input, shapes, stop } = rapid;
  const { memory } = input;
  for (;;) {
    const startedAt = performance.now();
    memory.pass ??= newPass(shapes.tables.map(({ id }) => id));
    await sweepAll(rapid, memory.pass);
    await tellPass(rapid, memory.pass);
    memory.pass = null;
    await wait(Math.max(0, MIN_PASS_INTERVAL_MS - (performance.now() - startedAt)), stop);
    if (input.isOver()) return rapid.end();
  }
}

async function sweepAll(rapid: Rapid, pass: SweepPass): Promise<void> {
  const { input, shapes, stop } = rapid;
  for (let failures = 0; ; ) {
    const tableId = pass.remaining[0];
    if (tableId === undefined) return;
    const { source, live, rebuild: isRebuilt } = shapes.table(tableId);
    if (!source) {
      pass.remaining.shift();
      continue;
    }
    pass.remaining.push(pass.remaining.shift()!);
    try {
      if (live && !isRebuilt) await sweepOne(rapid, pass, tableId);
      else await wait(TICK_MS, stop);
      failures = 0;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (isBasetideError(error, "source_schema_changed")) continue;
      if (mayMeanOldSchema(error)) await shapes.lookAgain();
      else if (isWholeBases(error)) throw error;
      input.reader.log.warn({ error, tableId }, "table not swept");
      await input.onRun({ ...newReport(), isBeside: true, startedAt: pass.startedAt, error });
      await wait(failurePauseMs(++failures), stop);
    }
    if (input.isOver()) rapid.end();
    stop.throwIfAborted();
  }
}

/** One table of the pass. It stays among those that remain while its read is held back as not to be believed. */
async function sweepOne(rapid: Rapid, pass: SweepPass, tableId: string): Promise<void> {
  const { input, shapes, beside } = rapid;
  const { source, live } = shapes.table(tableId);
  const before = { ...beside.reader.counts };
  beside.reader.tickets.renew();
  const outcome = await whileReading(rapid, () =>
    sweepTable(beside, source!, tableMemory(input.memory, live!)),
  );
  pass.requests += beside.reader.counts.requests - before.requests;
  pass.waitMs += beside.reader.counts.waitMs - before.waitMs;
  pass.inserted += outcome.inserted;
  pass.updated += outcome.updated;
  pass.deleted += outcome.deleted;
  if (outcome.isHeld) return void input.reader.log.warn({ tableId }, "mass deletion to be confirmed");
  pass.seen += outcome.seen;
  pass.remaining = pass.remaining.filter((id) => id !== tableId);
}

/** Runs `work`, during which the journal is kept for it. */
async function whileReading<T>({ reading }: Rapid, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  reading.add(startedAt);
  try {
    return await work();
  } finally {
    reading.delete(startedAt);
  }
}

function newPass(tableIds: string[]): SweepPass {
  const counts = { seen: 0, inserted: 0, updated: 0, deleted: 0, requests: 0, waitMs: 0 };
  return { startedAt: new Date(), remaining: tableIds, ...counts };
}

async function tellPass({ input, shapes }: Rapid, pass: SweepPass): Promise<void> {
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
