/**
 * Rapid mode with any history: users edit, apps write through the proxy, computed cells change by themselves, at any
 * moment between the requests of concurrent cycles and sweeps.
 */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { takeReadVersion } from "../../../core/replica";
import type { SourceRecord } from "../../../core/source";
import { pollForChanges, SchemaTracker, sweepTable } from "../../../core/sync/engine";
import { tableCache } from "../../../core/sync/state";
import { applyWrite } from "../../support/apply-write";
import { type Engine, testEngine } from "../../support/engine";
import { type FakeTable, modifiedSince } from "../../support/fake-source";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 240_000 });

const RUNS = 25;
const PAGE_SIZE = 4;
/** How much later each request finds the source's clock, ms: cycles overlap by 10 s. */
const STEP_MS = 3000;

const things = () => sourceTable("tblT", "Things", { Name: "text", Told: "formula" });

/** What happens just before the source answers a request. `row` selects a record, if there are any. */
type Event =
  | { kind: "create" | "update" | "computed" | "delete"; row: number; value: string }
  /** A write through the proxy, whose answer is applied after this many more requests. */
  | { kind: "write" | "write-delete"; row: number; value: string; late: number };

const value = fc.constantFrom("a", "b", "c");
const row = fc.nat(30);
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ kind: fc.constantFrom("create", "update", "computed", "delete"), row, value }),
  fc.record({ kind: fc.constantFrom("write", "write-delete"), row, value, late: fc.nat(3) }),
);
/** What happens before each of the first requests. */
const history = fc.array(fc.array(event, { maxLength: 3 }), { minLength: 5, maxLength: 40 });

test("I1-I3: after any history during cycles and sweeps, the replica equals the source one sweep later", {
  tags: "once",
}, async () => {
  await fc.assert(
    fc.asyncProperty(history, fc.nat(12), async (happens, records) => {
      const run = await startRun(happens, records);
      await Promise.all([run.pollUntilQuiet(), run.sweepUntilQuiet()]);
      await run.settled();

      // In rapid mode they are a second apart, and so never hold the same read version.
      for (let looks = 0; looks < 2; looks++) {
        run.renewReadVersions();
        await run.look();
      }
      const rows = (await run.engine.rows("things")) as { id: string; name: string }[];
      const names = new Map(rows.map(({ id, name }) => [id, name]));
      for (const record of run.table.records.values()) expect(names.get(record.id)).toBe(record.fields.fld0);

      await run.sweep();
      expect(await run.engine.rows("things")).toEqual(expectedRows(run.table));
    }),
    // A history takes up to a second: a shorter one would be looked for until the time is up.
    { numRuns: RUNS, endOnFailure: true },
  );
});

/** A replica of a base with one table, and everything that happens around it. */
async function startRun(happens: Event[][], records: number) {
  const engine = await testEngine();
  const { source, cache, replica } = engine;
  source.pageSize = PAGE_SIZE;
  const table = source.add(
    things(),
    Array.from({ length: records }, (_, index) => recordOf(`rec${index}`, "first")),
  );
  await engine.sync();
  let sourceMs = Date.now();
  const late: { due: number; apply: () => Promise<void> }[] = [];
  const world = { engine, table, made: records, nowMs: () => sourceMs };
  let requests = 0;
  const before = async () => {
    sourceMs += STEP_MS;
    cache.sourceClock.record(sourceMs);
    for (const one of happens[requests++] ?? []) {
      const apply = await carryOut(world, one);
      if (apply && "late" in one) late.push({ due: requests + one.late, apply });
    }
    for (const one of late.splice(0)) {
      if (one.due <= requests) await one.apply();
      else late.push(one);
    }
    // Answers arrive out of order.
    await Bun.sleep(requests % 3);
  };
  cache.sourceClock.record(sourceMs);
  source.before = before;

  const input = engine.input({ schemaPollMs: 60_000 });
  const reader = { ...input.reader, counts: { requests: 0, waitMs: 0 } };
  const base = {
    ...input.base,
    sync: { ...input.base.sync!, startedAt: new Date(), kind: "first" as const },
  };
  const schemaTracker = await SchemaTracker.open({ ...input, reader });
  const sweeping = { ...input, reader, schemaTracker, cache, onProgress: () => {} };
  const { source: sourceTable, live } = schemaTracker.table("tblT");
  const isQuiet = () => requests >= happens.length;
  const look = () =>
    pollForChanges({ ...sweeping, base, modifiedSince }, sourceTable!, tableCache(cache, live!));
  const sweep = async () => {
    reader.readVersions.renew();
    await sweepTable(sweeping, sourceTable!, tableCache(cache, live!));
  };
  return {
    engine,
    table,
    replica,
    look,
    sweep,
    renewReadVersions: () => reader.readVersions.renew(),
    async pollUntilQuiet() {
      while (!isQuiet()) await look();
    },
    async sweepUntilQuiet() {
      while (!isQuiet()) await sweep();
    },
    /** All writes in transit are applied. */
    async settled() {
      for (const one of late.splice(0)) await one.apply();
    },
  };
}

interface World {
  engine: Engine;
  table: FakeTable;
  /** Records created so far. */
  made: number;
  nowMs: () => number;
}

/** Changes the source; for a proxied write, returns how its answer is applied. */
async function carryOut(world: World, one: Event): Promise<(() => Promise<void>) | undefined> {
  const { table, engine, nowMs } = world;
  const ids = [...table.records.keys()];
  const id = ids[one.row % Math.max(1, ids.length)];
  const put = (record: SourceRecord) => {
    table.records.set(record.id, record);
    table.modifiedMs.set(record.id, nowMs());
    return record;
  };
  if (one.kind === "create") put(recordOf(`rec${world.made++}`, one.value));
  else if (id === undefined) return;
  else if (one.kind === "update") put(recordOf(id, one.value));
  else if (one.kind === "computed") {
    const was = table.records.get(id)!;
    table.records.set(id, { ...was, fields: { ...was.fields, fld1: one.value } });
  } else if (one.kind === "delete") table.records.delete(id);
  else {
    const readVersion = await takeReadVersion(engine.replica.replica);
    const written = one.kind === "write" ? put(recordOf(id, one.value)) : null;
    if (!written) table.records.delete(id);
    return () => applyWrite(engine.replica.replica, table, id, readVersion, written);
  }
}

function recordOf(id: string, name: string): SourceRecord {
  return sourceRecord(id, { fld0: name, fld1: `told of ${name}` });
}

function expectedRows({ records }: FakeTable) {
  return [...records.values()]
    .map(({ id, fields }) => ({
      id,
      created_time: "2024-05-01T12:34:56",
      name: fields.fld0,
      told: fields.fld1,
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}
