/** What a sweep that finds nothing costs the replica: one statement, behind the fence, that also begins the next one. */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { BasetideError } from "../../../core/errors";
import {
  applyRowImages,
  beginSync,
  claimEpoch,
  compileMapper,
  completeSync,
  loadCatalog,
  mapRecords,
  markRead,
  type Replica,
  readCatalog,
  recordDamage,
  takeReadVersion,
} from "../../../core/replica";
import type { SourceRecord } from "../../../core/source";
import { type NextSync, syncBase, withdrawNext } from "../../../core/sync/engine";
import { testEngine } from "../../support/engine";
import { fuzzRuns } from "../../support/fuzz";
import { sourceRecord, sourceTable } from "../../support/source-records";

const people = sourceTable("tblP", "People", { Name: "text", Age: "number" });
const person = (index: number, age: unknown = index): SourceRecord =>
  sourceRecord(`rec${String(index).padStart(5, "0")}`, { fld0: `Person ${index}`, fld1: age });
const persons = (count: number) => Array.from({ length: count }, (_, index) => person(index));
/** Checks the schema once. */
const seldom = { schemaPollMs: 3600_000 };

/** The same replica; `statements` gets the text of each statement. */
function watched(replica: Replica, statements: string[]): Replica {
  const sql = new Proxy(replica.sql, {
    apply(target, _self, args: [TemplateStringsArray, ...unknown[]]) {
      if (Array.isArray(args[0]) && "raw" in args[0]) statements.push(args[0].join("…").trim());
      return Reflect.apply(target as never, undefined, args);
    },
  });
  return { ...replica, sql };
}

async function scene() {
  const engine = await testEngine();
  const { records } = engine.source.add(people, persons(250));
  engine.source.add(sourceTable("tblO", "Other", { Name: "text" }), []);
  const statements: string[] = [];
  const sync = (next?: NextSync, isForced = false, options: { schemaPollMs?: number } = {}) => {
    statements.length = 0;
    const input = engine.input({ ...seldom, isForced, ...options });
    return syncBase({ ...input, replica: watched(engine.replica.replica, statements), next });
  };
  await sync();
  await sync();
  return { ...engine, records, statements, sync };
}

/** `_sync_meta`, with times in ms. */
async function syncMeta({ sql }: Replica) {
  const [row] = await sql<{ started: number; completed: number; lastMs: number; now: number }[]>`
    select extract(epoch from started_at)::float8 * 1000 as started,
      extract(epoch from completed_at)::float8 * 1000 as completed,
      extract(epoch from duration_last)::float8 * 1000 as "lastMs",
      extract(epoch from clock_timestamp())::float8 * 1000 as now
    from public._sync_meta`;
  return row!;
}

/**
 * A client's write through a proxy, up to the source's answer. The returned function shows it in SQL.
 *
 * @param record null: the client deletes the record
 */
async function proxied(replica: Replica, id: string, record: SourceRecord | null) {
  const table = (await loadCatalog(replica)).get("tblP")!;
  const readVersion = await takeReadVersion(replica);
  return () =>
    applyRowImages(replica, table, {
      epoch: null,
      readVersion,
      rows: record ? mapRecords(compileMapper(table.spec), [record], []) : [],
      gone: record ? [] : [id],
      issues: [],
      records: record ? [record] : [],
    });
}

/** A write of a proxy that the source has reverted: its page is the one that the worker knows. */
async function writeReverted(replica: Replica): Promise<void> {
  await (await proxied(replica, person(3).id, person(3, 333)))();
}

test("sweeps that follow each other send one statement each", async () => {
  const { sync, statements, replica, source } = await scene();
  const next: NextSync = {};
  await sync(next);
  for (let sweep = 0; sweep < 3; sweep++) {
    const before = await syncMeta(replica.replica);
    const calls: (typeof before)[] = [];
    source.before = async () => void calls.push(await syncMeta(replica.replica));
    expect(await sync(next)).toMatchObject({ kind: "sweep", seen: 250, updated: 0 });
    expect(statements).toEqual([expect.stringContaining(".mark_sync(…, true, ")]);
    // It started at the end of the one before, and is running from then on.
    for (const { started, completed } of [before, ...calls]) {
      expect({ started, completed }).toEqual({ started: before.started, completed: before.completed });
      expect(started).toBeGreaterThan(completed);
      expect(started).toBeCloseTo(completed, 0);
    }
    const meta = await syncMeta(replica.replica);
    expect(meta.completed).toBeGreaterThan(before.now);
    expect(meta.lastMs).toBeCloseTo(meta.completed - before.started, 0);
    expect(meta.started).toBeGreaterThan(meta.completed);
  }
});

test("a sync that does not begin after all is withdrawn, and a later one starts when it begins", async () => {
  const { sync, replica } = await scene();
  const next: NextSync = {};
  await sync(next);
  const before = await syncMeta(replica.replica);
  await withdrawNext(next, replica.replica, replica.epoch);
  const withdrawn = await syncMeta(replica.replica);
  expect(withdrawn).toMatchObject({ completed: before.completed, lastMs: before.lastMs });
  expect(withdrawn.completed - withdrawn.started).toBeCloseTo(before.lastMs, 0);
  await sync(next);
  const after = await syncMeta(replica.replica);
  expect(after.completed - after.lastMs).toBeGreaterThanOrEqual(withdrawn.now - 1);
});

test("a sweep tells whether the recent-writes log is empty", async () => {
  const { sync, replica } = await scene();
  const next: NextSync = {};
  const { sql } = replica.replica;
  for (const [prepare, hasRecentWrites] of [
    [() => sql`delete from public_swap._recent_writes`, false],
    [() => writeReverted(replica.replica), true],
  ] as const) {
    await prepare();
    await sync(next);
    expect(next.prepared).toMatchObject({ hasRecentWrites });
  }
});

test("a schema check that finds nothing reads nothing of the replica: before a sweep, and during it", async () => {
  const { sync, statements, source, cache } = await scene();
  const next: NextSync = {};
  await sync(next);
  const checks = () => source.calls.filter((call) => call.startsWith("schema")).length;
  const before = checks();
  source.before = (call) => {
    if (call.startsWith("list") && checks() === before + 1) cache.schemaCheckRequestedAt ??= new Date();
  };
  expect(await sync(next, false, { schemaPollMs: 0 })).toMatchObject({ kind: "sweep", seen: 250 });
  expect(checks()).toBeGreaterThan(before + 1);
  expect(statements).toEqual([expect.stringContaining(".mark_sync(…, true, ")]);
  // What it does find is applied.
  source.before = () => {};
  const [name, age] = people.fields;
  source.tables[0]!.table = { ...people, fields: [name!, { ...age!, name: "Years" }] };
  await sync(next, false, { schemaPollMs: 0 });
  expect(statements.length).toBeGreaterThan(1);
});

test("what was prepared for another lease, a moment ago, or before a resync is not used", async () => {
  const { sync, statements } = await scene();
  const next: NextSync = {};
  const begins = expect.stringContaining(".mark_sync(…, false, true");
  await sync(next);
  await sync(next, true);
  expect(statements).toContainEqual(begins);
  await sync(next);
  expect(statements).toHaveLength(1);
  next.prepared!.sentAt -= 15_001;
  await sync(next);
  expect(statements[0]).toEqual(begins);
  next.prepared!.epoch--;
  await sync(next);
  expect(statements[0]).toEqual(begins);
});

test.for([true, false])(
  "I3: a client's writes that people have reverted are not in SQL after one sync, prepared: %s",
  async (isPrepared) => {
    const { sync, replica, source, rows, records } = await scene();
    const next: NextSync = {};
    await sync(next);
    const { replica: own } = replica;
    // Changed, created and deleted between two syncs.
    await writeReverted(own);
    await (await proxied(own, person(900).id, person(900)))();
    await (await proxied(own, person(4).id, null))();
    if (!isPrepared) next.prepared = undefined;
    // Shown only after its page was read.
    const show = await proxied(own, person(5).id, person(5, 555));
    let calls = 0;
    source.before = async () => {
      if (++calls === 3) await show();
    };
    expect(await sync(next)).toMatchObject({ completedAt: expect.any(Date) });
    expect(calls).toBeGreaterThanOrEqual(3);
    expect(await rows()).toMatchObject(
      [...records.values()].map(({ id, fields }) => ({ id, age: fields.fld1 })),
    );
  },
);

test("I3: a sync that reads the recent-writes log itself requests its pages after that", async () => {
  const { sync, replica, source, rows, records } = await scene();
  const { replica: own } = replica;
  const next: NextSync = {};
  await sync(next);
  // The end of the sync writes a record, so that the next sync reads the log.
  const show = await proxied(own, person(5).id, person(5, 555));
  let calls = 0;
  source.before = async () => {
    if (++calls === 3) await show();
  };
  await sync(next);
  // A client's write after the end of the sync, which people have changed since.
  await (await proxied(own, person(3).id, person(3, 333)))();
  records.set(person(3).id, person(3, 7));
  await sync(next);
  expect((await rows())[3]).toMatchObject({ age: 7 });
});

test("I3: whatever clients and people do, one sync of a quiet source leaves SQL equal to it", async () => {
  const { sync, replica, source, rows, records } = await scene();
  const { replica: own } = replica;
  const next: NextSync = {};
  const originals = new Map([200, 201, 202, 300].map((index) => [index, records.get(person(index).id)]));
  const put = (index: number, record: SourceRecord | null | undefined) => {
    if (record) records.set(person(index).id, record);
    else records.delete(person(index).id);
  };
  const age = fc.option(fc.integer({ min: 1000, max: 1003 }), { freq: 3 });
  const step = fc.record({
    index: fc.constantFrom(...originals.keys()),
    client: fc.option(age),
    person: fc.constantFrom("nothing", "reverts", "deletes", "edits"),
    shown: fc.constantFrom("at once", "during the sync"),
    isLastBeforeSync: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      let late: (() => Promise<unknown>)[] = [];
      source.before = async (call) => {
        if (!call.startsWith("list")) return;
        const showing = late;
        late = [];
        for (const show of showing) await show();
      };
      for (const { index, client, person: does, shown, isLastBeforeSync } of steps) {
        const { id } = person(index);
        if (client !== null || records.has(id)) {
          const record = client === null ? null : person(index, client);
          const show = await proxied(own, id, record);
          put(index, record);
          if (shown === "at once") await show();
          else late.push(show);
        }
        if (does === "reverts") put(index, originals.get(index));
        if (does === "deletes") put(index, null);
        if (does === "edits") put(index, person(index, 7));
        if (isLastBeforeSync) await sync(next);
      }
      await sync(next);
      const expected = [...records.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
      expect(await rows()).toMatchObject(expected.map(({ id, fields }) => ({ id, age: fields.fld1 })));
    }),
    { numRuns: 15 * fuzzRuns, endOnFailure: true },
  );
});

test("a client that writes all the time does not keep a sync from completing", async () => {
  const { sync, replica, source } = await scene();
  const next: NextSync = {};
  await sync(next);
  source.before = () => writeReverted(replica.replica);
  expect(await sync(next)).toMatchObject({ completedAt: expect.any(Date) });
});

test("a prepared sync that fails leaves _sync_meta as the last complete one did", async () => {
  const { sync, source, replica, statements } = await scene();
  const next: NextSync = {};
  await sync(next);
  const before = await syncMeta(replica.replica);
  source.before = () => {
    throw new BasetideError("source_not_found");
  };
  expect(await sync(next)).toMatchObject({ completedAt: null });
  expect(statements).toEqual([expect.stringContaining(".mark_sync_ended(")]);
  const after = await syncMeta(replica.replica);
  expect(after).toMatchObject({ completed: before.completed, lastMs: before.lastMs });
  expect(after.completed - after.started).toBeCloseTo(before.lastMs, 0);
  source.before = () => {};
  expect(await sync(next)).toMatchObject({ completedAt: expect.any(Date) });
});

test("a long sweep takes another read version only where something has been written lately", async () => {
  const { sync, source, replica, statements } = await scene();
  const now = performance.now.bind(performance);
  const next: NextSync = {};
  for (const isQuiet of [true, false]) {
    if (isQuiet) await replica.replica.sql`delete from public_swap._recent_writes`;
    else await writeReverted(replica.replica);
    await sync(next);
    let passedMs = 0;
    using _ = vi.spyOn(performance, "now").mockImplementation(() => now() + passedMs);
    source.before = () => {
      passedMs = 20_000;
    };
    expect(await sync(next)).toMatchObject({ seen: 250, completedAt: expect.any(Date) });
    source.before = () => {};
    expect(statements.some((statement) => statement.includes(".read_version("))).toBe(!isQuiet);
  }
});

test("a sweep without changes sends two statements, if none is to follow it", async () => {
  const { sync, statements } = await scene();
  for (let sweep = 0; sweep < 2; sweep++) {
    expect(await sync()).toMatchObject({
      kind: "sweep",
      seen: 250,
      requests: 4,
      inserted: 0,
      updated: 0,
      deleted: 0,
    });
    expect(statements).toEqual([
      expect.stringContaining(".mark_sync(…, false, true"),
      expect.stringContaining(".mark_sync(…, true, "),
    ]);
  }
});

test("records of a page that is as before are not looked at", async () => {
  const { source, records, sync, rows } = await scene();
  const lookedAt = new Set<string>();
  source.onPage = (_, page) => ({
    ...page,
    fingerprint(index) {
      lookedAt.add(page.id(index));
      return page.fingerprint(index);
    },
  });
  expect(await sync()).toMatchObject({ seen: 250, updated: 0 });
  expect(lookedAt.size).toBe(0);

  records.set("rec00120", person(120, 7));
  expect(await sync()).toMatchObject({ seen: 250, updated: 1 });
  expect(lookedAt.size).toBe(100);
  records.delete("rec00249");
  expect(await sync()).toMatchObject({ seen: 249, deleted: 1 });
  // The record comes back: its page is one that was known before.
  records.set("rec00249", person(249));
  expect(await sync()).toMatchObject({ seen: 250, inserted: 1 });
  expect((await rows())[249]).toMatchObject({ age: 249 });
  await sync();
  await sync();
  lookedAt.clear();
  expect(await sync()).toMatchObject({ seen: 250, inserted: 0, updated: 0, deleted: 0 });
  expect(lookedAt.size).toBe(0);
});

test("a sweep is given what the one before remembered of each page, as long as the page is there", async () => {
  const { source, records, input, replica } = await scene();
  const given: (string | undefined)[] = [];
  const sync = () => {
    given.length = 0;
    const all = input(seldom);
    const { connection } = all.reader;
    const listPage: typeof connection.listPage = (base, table, options, signal) => {
      if (table.id === "tblP") given.push(options.before?.firstId);
      return connection.listPage(base, table, options, signal);
    };
    const reader = { ...all.reader, connection: { ...connection, listPage } };
    return syncBase({ ...all, replica: replica.replica, reader });
  };
  source.onPage = (_, page) => {
    const { firstId, digest = 0 } = page;
    const remembered = { digest, firstId, place: undefined, length: 0, checksum: 0, until: 0 };
    return { ...page, remembered };
  };
  await sync();
  expect(given).toEqual([undefined, undefined, undefined]);
  await sync();
  expect(given).toEqual(["rec00000", "rec00100", "rec00200"]);
  for (let index = 150; index < 250; index++) records.delete(person(index).id);
  await sync();
  for (let index = 150; index < 250; index++) records.set(person(index).id, person(index));
  await sync();
  expect(given).toEqual(["rec00000", "rec00100", undefined]);
});

test("I3: writes of other processes, changed issues and a damaged table are found by the next sweep", async () => {
  const { sync, records, rows, replica } = await scene();
  const { sql } = replica.replica;
  await writeReverted(replica.replica);
  expect(await sync()).toMatchObject({ inserted: 0, updated: 1, deleted: 0 });
  expect((await rows())[3]).toMatchObject({ age: 3 });

  records.set("rec00004", person(4, "four"));
  expect(await sync()).toMatchObject({ issueCount: 1, issues: [{ record_id: "rec00004" }] });
  expect((await sync()).issues).toBeUndefined();
  records.set("rec00004", person(4));
  expect(await sync()).toMatchObject({ issueCount: 0, issues: [] });

  await sql`alter table public.people drop column age`;
  await recordDamage(replica.replica, replica.epoch);
  expect(await sync()).toMatchObject({ kind: "first", completedAt: expect.any(Date) });
  expect((await rows())[3]).toMatchObject({ age: 3 });
});

test("the state of the catalog changes with its rows, and with the owners of its tables", async () => {
  const { replica, sync } = await scene();
  const { replica: own, epoch } = replica;
  const isSame = async (state: string) =>
    (await beginSync(own, epoch, { catalog: state, loggedUpTo: new Map() })).isSameCatalog;
  const { state } = await readCatalog(own);
  expect(await isSame(state)).toBe(true);
  await sync();
  expect(await isSame(state)).toBe(true);
  await markRead(own, epoch, "tblP", {});
  expect(await isSame(state)).toBe(false);
  const later = await readCatalog(own);
  expect(await isSame(later.state)).toBe(true);
  await own.sql`drop table public.other`;
  expect(await isSame(later.state)).toBe(false);
});

test("I5: a lease that was overtaken begins and completes no sync", async () => {
  const { replica } = await scene();
  const { replica: own, epoch } = replica;
  const meta = () => own.sql`select * from public._sync_meta`.then((rows) => [...rows]);
  const before = await meta();
  await claimEpoch(own);
  const known = { catalog: null, loggedUpTo: new Map([["tblP", 0]]) };
  await expect(beginSync(own, epoch, known)).rejects.toMatchObject({ code: "lease_lost" });
  for (const begins of [false, true]) {
    const completing = completeSync(own, epoch, known, { begins, isChecked: true });
    await expect(completing).rejects.toMatchObject({ code: "lease_lost" });
  }
  expect(await meta()).toEqual(before);
});

test("I1: a commit that issues a read version is waited for, one that only marks times is not", async () => {
  const { replica } = await scene();
  const { replica: own, epoch } = replica;
  const waits = (setting: string, call: string) =>
    own.sql.begin(async (sql) => {
      await sql.unsafe(`set local synchronous_commit = ${setting}`);
      await sql.unsafe(`select from public_swap.${call.replace("(", `(${epoch}, `)}`);
      const [row] = await sql<{ mode: string }[]>`select current_setting('synchronous_commit') as mode`;
      return row!.mode;
    });
  const completes = "mark_sync(true, false, true, null, '{}', '{}', 0)";
  const prepares = "mark_sync(true, true, true, null, '{}', '{}', 0)";
  const timesOf = (completed: boolean, begun: boolean) =>
    `mark_sync(${completed}, ${begun}, true, null, null, null, null)`;
  // The first one of a session verifies the server.
  await waits("on", completes);
  for (const setting of ["on", "off", "local", "remote_apply"]) {
    expect(await waits(setting, timesOf(true, false)), setting).toBe("off");
    expect(await waits(setting, timesOf(false, true)), setting).toBe("off");
    expect(await waits(setting, completes), setting).toBe("off");
    for (const call of [prepares, "mark_sync(false, true, true, null, '{}', '{}', 0)"])
      expect(await waits(setting, call), setting).toBe(setting === "remote_apply" ? setting : "on");
  }
  // The first statement of another incarnation moves all numbers.
  for (const call of [timesOf(true, false), completes, "mark_sync_started(interval '1 ms')"]) {
    await own.sql`update public_swap._state set incarnation = 'an earlier one'`;
    expect(await waits("off", call)).toBe("on");
  }
});
