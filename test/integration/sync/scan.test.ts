/** Sweeps of one table, of which only one runs at a time. */
import { expect, test } from "vitest";
import { TaskGroup } from "../../../core/async";
import { BasetideError } from "../../../core/errors";
import { SchemaTracker } from "../../../core/sync/engine";
import type { RunReport } from "../../../core/sync/host";
import {
  readerWithPriority,
  type SyncSession,
  scanning,
  sweepExclusively,
} from "../../../core/sync/modes/shared";
import { QuotaSplit } from "../../../core/sync/pacing";
import { testEngine } from "../../support/engine";
import { until } from "../../support/poll";
import { rowsOf, teamRecord, teamsAndPeople } from "../../support/teams";

/** A replica of 250 teams, and sweeps of it in the foreground and background. */
async function session() {
  const engine = await testEngine();
  const { teams } = teamsAndPeople();
  const records = Array.from({ length: 250 }, (_, index) =>
    teamRecord(`rec${1000 + index}`, `Team ${index}`),
  );
  const table = engine.source.add(teams, records);
  await engine.sync();
  const input = {
    ...engine.input({ schemaPollMs: 60_000 }),
    isOver: () => false,
    onRun: async () => {},
    onRead: async () => {},
  };
  const taskGroup = new TaskGroup(input.reader.stop);
  const split = new QuotaSplit(input.reader.limiter, () => ({ every: 2, gapMs: 0 }), taskGroup.stop);
  const reader = readerWithPriority(input, split, "background", taskGroup.stop);
  const schemaTracker = await SchemaTracker.open({ ...input, reader });
  const background = { ...input, schemaTracker, reader, onProgress: () => {} };
  const made: SyncSession = {
    input,
    schemaTracker,
    split,
    taskGroup,
    stop: taskGroup.stop,
    background,
    reading: new Set(),
    sweeping: new Map(),
  };
  engine.source.calls.length = 0;
  return { engine, table, made };
}

/** Holds the source's answers to this call until it is released. */
function holding(engine: Awaited<ReturnType<typeof testEngine>>, held: string) {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isHeld = false;
  engine.source.before = (call) => {
    if (call !== held || isHeld) return;
    isHeld = true;
    return promise;
  };
  return { letGo: resolve, isHeld: () => until(() => isHeld, { what: `${held} is held` }) };
}

test("a sweep of the scan gives way to an urgent one, which reads the whole table", async () => {
  const { engine, table, made } = await session();
  const held = holding(engine, "list tblT 100");
  const ofPass = sweepExclusively(made, made.background, "tblT");
  await held.isHeld();
  table.records.set("rec1000", teamRecord("rec1000", "Renamed"));
  table.records.delete("rec1249");
  const urgent = sweepExclusively(made, made.background, "tblT", true);
  held.letGo();
  expect(await ofPass).toBeUndefined();
  expect(await urgent).toMatchObject({ seen: 249, updated: 1, deleted: 1 });
  expect(engine.source.calls.filter((call) => call === "list tblT 200")).toHaveLength(1);
  expect(await engine.rows("teams")).toEqual(rowsOf.teams(table.records.values()));
});

test("an urgent sweep gives way to none: the scan waits for it and leaves the table to it", async () => {
  const { engine, made } = await session();
  const held = holding(engine, "list tblT 100");
  const urgent = sweepExclusively(made, made.background, "tblT", true);
  await held.isHeld();
  const ofPass = sweepExclusively(made, made.background, "tblT");
  held.letGo();
  expect(await urgent).toMatchObject({ seen: 250 });
  expect(await ofPass).toBeUndefined();
  expect(engine.source.calls).toEqual(["list tblT 0", "list tblT 100", "list tblT 200"]);
});

test("a table that a scan could not read is reported, and tried again after a pause, whatever it fails with", async () => {
  const { made } = await session();
  const { cache } = made.input;
  const runs: RunReport[] = [];
  made.input.onRun = async (report) => void runs.push(report);
  cache.scan = {
    ...{ seen: 0, inserted: 0, updated: 0, deleted: 0, requests: 0, waitMs: 0 },
    startedAt: new Date(),
    remaining: ["tblT"],
    isOver: true,
  };
  cache.scanStartedAt = performance.now();
  const { items } = scanning(made, { everyMs: () => 60_000 });
  const { ownTable } = made.schemaTracker;
  made.schemaTracker.ownTable = () => Promise.reject(new BasetideError("replica_busy"));
  // The scheduler pauses after an item that throws.
  await expect([...items()][0]!.run()).rejects.toMatchObject({ code: "replica_busy" });
  expect(runs).toMatchObject([{ isBackground: true, error: { code: "replica_busy" } }]);
  made.schemaTracker.ownTable = ownTable;
  await [...items()][0]!.run();
  expect(cache.scan).toMatchObject({ remaining: [] });
  await [...items()][0]!.run();
  expect(cache.scan).toBeNull();
});
