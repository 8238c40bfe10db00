/** What a sweep that finds nothing costs the replica: one statement to begin and one to end, both behind the fence. */
import { expect, test } from "vitest";
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
import { syncBase } from "../../../core/sync/engine";
import { testEngine } from "../../support/engine";
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
  const sync = () => {
    statements.length = 0;
    const input = engine.input(seldom);
    return syncBase({ ...input, replica: watched(engine.replica.replica, statements) });
  };
  await sync();
  await sync();
  return { ...engine, records, statements, sync };
}

test("a sweep without changes sends two statements, however many pages it reads", async () => {
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
      expect.stringContaining(".mark_sync(…, true, false"),
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

test("I3: writes of other processes, changed issues and a damaged table are found by the next sweep", async () => {
  const { sync, records, rows, replica } = await scene();
  const { sql } = replica.replica;
  const table = (await loadCatalog(replica.replica)).get("tblP")!;
  // A proxied write that the source has reverted: its page is the one that the worker knows.
  await applyRowImages(replica.replica, table, {
    epoch: null,
    readVersion: await takeReadVersion(replica.replica),
    rows: mapRecords(compileMapper(table.spec), [person(3, 333)], []),
    gone: [],
    issues: [],
    records: [person(3, 333)],
  });
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
  await expect(completeSync(own, epoch)).rejects.toMatchObject({ code: "lease_lost" });
  expect(await meta()).toEqual(before);
});

test("I1: a commit that issues a read version is waited for, one that only marks times is not", async () => {
  const { replica } = await scene();
  const { replica: own, epoch } = replica;
  const waits = (setting: string, call: string) =>
    own.sql.begin(async (sql) => {
      await sql.unsafe(`set local synchronous_commit = ${setting}`);
      await sql.unsafe(`select from public_swap.mark_sync(${epoch}, ${call})`);
      const [row] = await sql<{ mode: string }[]>`select current_setting('synchronous_commit') as mode`;
      return row!.mode;
    });
  for (const setting of ["on", "off", "local", "remote_apply"]) {
    expect(await waits(setting, "true, false"), setting).toBe("off");
    expect(await waits(setting, "false, true"), setting).toBe("off");
    expect(await waits(setting, "false, true, null, '{}', '{}'"), setting).toBe(
      setting === "remote_apply" ? setting : "on",
    );
  }
  // The first statement of another incarnation moves all numbers.
  await own.sql`update public_swap._state set incarnation = 'an earlier one'`;
  expect(await waits("off", "true, false")).toBe("on");
});
