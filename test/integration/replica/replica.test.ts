import fc from "fast-check";
import { expect, test } from "vitest";
import {
  applyRowImages,
  type Catalog,
  type CatalogTable,
  type CellIssue,
  changeShape,
  claimEpoch,
  compileMapper,
  loadCatalog,
  mapRecords,
  markSyncCompleted,
  markSyncEnded,
  markSyncStarted,
  planSchema,
  type Replica,
  recentWritesSince,
  startBuild,
  takeReadVersion,
  trimRecentWrites,
} from "../../../core/replica";
import type { SourceRecord, SourceSchema, SourceTable } from "../../../core/source";
import { putBuild } from "../../support/put-build";
import { dumpTable, readerOf, type TestReplica, testReplica } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };

/** Builds every table of `schema` that is missing, with these records, and returns the catalog. */
async function build(
  { replica, epoch }: TestReplica,
  schema: SourceSchema,
  records: Record<string, SourceRecord[]> = {},
): Promise<Catalog> {
  const catalog = await loadCatalog(replica);
  const plan = planSchema(catalog, schema, SETTINGS);
  await changeShape(replica, epoch, catalog, plan);
  for (const spec of plan.rebuild) {
    const issues: CellIssue[] = [];
    const aside = await startBuild(replica, epoch, spec);
    await aside.append(mapRecords(compileMapper(spec), records[spec.tableId] ?? [], issues));
    const live = (await loadCatalog(replica)).get(spec.tableId);
    expect(await putBuild({ replica, epoch }, aside, live, { issues })).toBe(true);
  }
  return loadCatalog(replica);
}

/** Applies records as a proxied write does, or as a sweep of lease `epoch`. */
function apply(
  replica: Replica,
  table: CatalogTable,
  image: { readVersion: number; records?: SourceRecord[]; gone?: string[]; epoch?: number },
) {
  const issues: CellIssue[] = [];
  const records = image.records ?? [];
  return applyRowImages(replica, table, {
    epoch: image.epoch ?? null,
    readVersion: image.readVersion,
    rows: mapRecords(compileMapper(table.spec), records, issues),
    gone: image.gone ?? [],
    issues,
    ...(image.epoch === undefined ? { records } : {}),
  });
}

const versioned: SourceTable = sourceTable("tblV", "Versions", { Version: "number" });

test("I1: in any order of requests and answers, a row never goes back to an older image", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const table = (await build(test, { tables: [versioned] })).get("tblV")!;
  let recordNumber = 0;

  type Step = { step: "edit" | "readVersion" | "read" | "apply"; asker: number };
  const steps = fc.array(
    fc.record({ step: fc.constantFrom("edit", "readVersion", "read", "apply"), asker: fc.nat(2) }),
    { minLength: 8, maxLength: 24 },
  ) as fc.Arbitrary<Step[]>;
  await fc.assert(
    fc.asyncProperty(steps, fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }), async (all, isSweep) => {
      const id = `rec${recordNumber++}`;
      const askers = isSweep.map(() => ({ readVersion: 0, version: 0 }));
      let sourceVersion = 1;
      let shown = 0;
      for (const { step, asker: index } of all) {
        const asker = askers[index]!;
        if (step === "edit") sourceVersion++;
        if (step === "readVersion" && !asker.readVersion) asker.readVersion = await takeReadVersion(replica);
        if (step === "read" && asker.readVersion && !asker.version) asker.version = sourceVersion;
        if (step === "apply" && asker.version) {
          const records = [sourceRecord(id, { fld0: asker.version })];
          await apply(replica, table, {
            readVersion: asker.readVersion,
            records,
            ...(isSweep[index] ? { epoch } : {}),
          });
          askers[index] = { readVersion: 0, version: 0 };
        }
        const [row] = await replica.sql<{ version: number }[]>`
          select version::int from public.versions where id = ${id}`;
        expect(row?.version ?? 0).toBeGreaterThanOrEqual(shown);
        shown = row?.version ?? 0;
      }
    }),
    { numRuns: 60 },
  );
});

test("an image loses to one that was applied after its read version, and this is reported", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const table = (await build(test, { tables: [versioned] })).get("tblV")!;
  const early = await takeReadVersion(replica);
  const late = await takeReadVersion(replica);
  await apply(replica, table, { readVersion: late, records: [sourceRecord("rec1", { fld0: 2 })] });
  const lost = await apply(replica, table, {
    readVersion: early,
    records: [sourceRecord("rec1", { fld0: 1 })],
    epoch,
  });
  expect(lost).toEqual({ inserted: 0, updated: 0, deleted: 0, lost: ["rec1"] });
  expect(await dumpTable(replica.sql, "versions")).toMatchObject([{ id: "rec1", version: 2 }]);
});

test("I2: a sweep neither deletes what was written after it began, nor restores what was deleted", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const catalog = await build(test, { tables: [versioned] }, { tblV: [sourceRecord("recOld", { fld0: 1 })] });
  const table = catalog.get("tblV")!;
  const sweepBegan = await takeReadVersion(replica);
  const write = await takeReadVersion(replica);
  await apply(replica, table, {
    readVersion: write,
    records: [sourceRecord("recNew", { fld0: 1 })],
    gone: ["recOld"],
  });
  const gone = await apply(replica, table, { readVersion: sweepBegan, gone: ["recNew"], epoch });
  expect(gone.lost).toEqual(["recNew"]);
  const back = await apply(replica, table, {
    readVersion: sweepBegan,
    records: [sourceRecord("recOld", { fld0: 1 })],
    epoch,
  });
  expect(back.lost).toEqual(["recOld"]);
  expect(await dumpTable(replica.sql, "versions")).toMatchObject([{ id: "recNew" }]);
});

test("images older than the trimmed recent-writes log are refused; only the lease's holder trims it", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const table = (await build(test, { tables: [versioned] })).get("tblV")!;
  const old = await takeReadVersion(replica);
  await apply(replica, table, { readVersion: old, records: [sourceRecord("rec1", { fld0: 2 })] });
  const [entry] = await recentWritesSince(replica, "tblV", 0);
  await expect(trimRecentWrites(replica, epoch - 1, entry!.appliedVersion)).rejects.toMatchObject({
    code: "lease_lost",
  });
  expect(await recentWritesSince(replica, "tblV", 0)).toHaveLength(1);
  await trimRecentWrites(replica, epoch, entry!.appliedVersion);
  expect(await recentWritesSince(replica, "tblV", 0)).toHaveLength(0);
  const lost = await apply(replica, table, {
    readVersion: old,
    records: [sourceRecord("rec1", { fld0: 1 })],
  });
  expect(lost.lost).toEqual(["rec1"]);
});

test("an unchanged row is not written", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const records = [sourceRecord("rec1", { fld0: 1 }), sourceRecord("rec2", { fld0: 2 })];
  const table = (await build(test, { tables: [versioned] }, { tblV: records })).get("tblV")!;
  const rowVersions = () =>
    replica.sql`select id, xmin::text from public.versions order by id`.then((rows) => [...rows]);
  const before = await rowVersions();
  const readVersion = await takeReadVersion(replica);
  expect(await apply(replica, table, { readVersion, records, epoch })).toMatchObject({
    inserted: 0,
    updated: 0,
  });
  expect(await rowVersions()).toEqual(before);
});

test("I5: a worker that lost its lease can no longer write", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const catalog = await build(test, { tables: [versioned] });
  const table = catalog.get("tblV")!;
  await claimEpoch(replica);
  const overtaken = expect.objectContaining({ code: "lease_lost" });
  const readVersion = await takeReadVersion(replica);
  await expect(
    apply(replica, table, { readVersion, records: [sourceRecord("rec1", { fld0: 1 })], epoch }),
  ).rejects.toEqual(overtaken);
  await expect(markSyncStarted(replica, epoch)).rejects.toEqual(overtaken);
  await expect(startBuild(replica, epoch, table.spec)).rejects.toEqual(overtaken);
  await expect(changeShape(replica, epoch, catalog, { inPlace: [], drop: [table.spec] })).rejects.toEqual(
    overtaken,
  );
  expect(await dumpTable(replica.sql, "versions")).toEqual([]);
});

test("I5: a session verifies its server once, and the epoch and its own settings each time", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const [session, other] = [await replica.sql.reserve(), await replica.sql.reserve()];
  const fence = (of: number | null, on = session) => on`select public_swap.fence(${of})`;
  await fence(epoch);
  await session`
    create or replace function public_swap.timeline() returns text language plpgsql as $$
    begin raise exception 'asked for the timeline'; end $$`;
  const asks = { message: "asked for the timeline" };
  await fence(epoch);
  await fence(null);
  await expect(fence(epoch, other)).rejects.toMatchObject(asks);
  await expect(fence(epoch - 1)).rejects.toMatchObject({ code: "BT001" });
  for (const [setting, wrong, right, refusal] of [
    ["default_transaction_isolation", "'repeatable read'", "'read committed'", { code: "BT003" }],
    ["synchronous_commit", "off", "on", asks],
  ] as const) {
    await session.unsafe(`set ${setting} = ${wrong}`);
    await expect(fence(epoch)).rejects.toMatchObject(refusal);
    await expect(fence(null)).rejects.toMatchObject(refusal);
    await session.unsafe(`set ${setting} = ${right}`);
    await fence(epoch);
  }
  await session`update public_swap._state set incarnation = 'an earlier one'`;
  await expect(fence(epoch)).rejects.toMatchObject(asks);
  for (const one of [session, other]) one.release();
});

test("I6: a rebuilt table is swapped in only when it has every image of the recent-writes log", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const table = (await build(test, { tables: [versioned] })).get("tblV")!;
  const spec = { ...table.spec, columns: [{ ...table.spec.columns[0]!, columnType: "text" as const }] };
  const aside = await startBuild(replica, epoch, spec);
  const readVersion = await takeReadVersion(replica);
  await apply(replica, table, { readVersion, records: [sourceRecord("rec1", { fld0: 1 })] });
  expect(await putBuild({ replica, epoch }, aside, table, { seen: readVersion })).toBe(false);
  const [entry] = await recentWritesSince(replica, "tblV", readVersion);
  expect(entry).toMatchObject({ recordId: "rec1", isGone: false, record: { fields: { fld0: 1 } } });
  expect(await putBuild({ replica, epoch }, aside, table, { seen: entry!.appliedVersion })).toBe(true);
  await expect(
    apply(replica, table, { readVersion, records: [sourceRecord("rec1", { fld0: 1 })] }),
  ).rejects.toMatchObject({ code: "shape_changed" });
});

test("I6: an image requested before a table got a column does not leave the new column empty", async () => {
  await using test = await testReplica();
  const { replica } = test;
  await build(test, { tables: [versioned] });
  const asked = await takeReadVersion(replica);
  const wider = sourceTable("tblV", "Versions", { Version: "number", Loud: "text" });
  const table = (await build(test, { tables: [wider] })).get("tblV")!;
  const old = sourceRecord("rec1", { fld0: 1 });
  expect((await apply(replica, table, { readVersion: asked, records: [old] })).lost).toEqual(["rec1"]);
  const whole = sourceRecord("rec1", { fld0: 1, fld1: "ONE" });
  const readVersion = await takeReadVersion(replica);
  expect((await apply(replica, table, { readVersion, records: [whole] })).lost).toEqual([]);
  const [entry] = await recentWritesSince(replica, "tblV", readVersion);
  expect(entry).toMatchObject({ recordId: "rec1", readVersion: readVersion });
});

test("I1: writes with a kept plan go to the table that a rebuild has swapped in, and to its new columns", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const write = async (table: CatalogTable, fields: Record<string, unknown>) => {
    const readVersion = await takeReadVersion(replica);
    const { lost } = await apply(replica, table, { readVersion, records: [sourceRecord("rec1", fields)] });
    expect(lost).toEqual([]);
  };
  let table = (await build(test, { tables: [versioned] })).get("tblV")!;
  // More often than a statement is planned for its values.
  for (let version = 1; version <= 8; version++) await write(table, { fld0: version });
  const aside = await startBuild(replica, epoch, table.spec);
  await aside.append(mapRecords(compileMapper(table.spec), [sourceRecord("rec2", { fld0: 0 })], []));
  await aside.append(mapRecords(compileMapper(table.spec), [sourceRecord("rec1", { fld0: 0 })], []));
  expect(await putBuild({ replica, epoch }, aside, table)).toBe(true);
  table = (await loadCatalog(replica)).get("tblV")!;
  for (let version = 9; version <= 10; version++) await write(table, { fld0: version });
  const rows = () => replica.sql`select id, version::int as version from public.versions order by id`;
  expect([...(await rows())]).toEqual([
    { id: "rec1", version: 10 },
    { id: "rec2", version: 0 },
  ]);
  const wider = sourceTable("tblV", "Versions", { Version: "number", Loud: "text" });
  table = (await build(test, { tables: [wider] })).get("tblV")!;
  await write(table, { fld0: 11, fld1: "it's \\ 'quoted'" });
  const [row] =
    await replica.sql`select version::int as version, loud from public.versions where id = 'rec1'`;
  expect(row).toEqual({ version: 11, loud: "it's \\ 'quoted'" });
});

test("an exchange of columns is abandoned soon when a query locks the table, and nothing has changed", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const catalog = await build(test, { tables: [versioned] });
  const table = catalog.get("tblV")!;
  const tables = [sourceTable("tblV", "Versions", { Version: "text" })];
  const plan = planSchema(catalog, { tables }, SETTINGS);
  const aside = await startBuild(replica, epoch, plan.rebuild[0]!);
  await using reader = readerOf(test.readerUrl);
  await reader.begin(async (query) => {
    await query`select count(*) from versions`;
    await expect(putBuild({ replica, epoch }, aside, table)).rejects.toMatchObject({
      code: "replica_busy",
    });
  });
  expect(await putBuild({ replica, epoch }, aside, table)).toBe(true);
});

test("swapped names are swapped in place: no row is rewritten, and comments and issues are updated", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const before: SourceSchema = {
    tables: [
      sourceTable("tbl1", "Alpha", { One: "number", Two: "text" }),
      sourceTable("tbl2", "Beta", { Only: "text" }),
    ],
  };
  const catalog = await build(test, before, {
    tbl1: [sourceRecord("rec1", { fld0: "not a number", fld1: "two" })],
  });
  const [file] = await replica.sql`select relfilenode from pg_class where oid = 'public.alpha'::regclass`;
  const after: SourceSchema = {
    tables: [
      sourceTable("tbl1", "Beta", { Two: "number", One: "text" }),
      sourceTable("tbl2", "Alpha", { Only: "text" }),
    ],
  };
  const plan = planSchema(catalog, after, SETTINGS);
  expect(plan.rebuild).toEqual([]);
  await changeShape(replica, epoch, catalog, plan);
  expect(await dumpTable(replica.sql, "beta")).toMatchObject([{ id: "rec1", two: null, one: "two" }]);
  expect(await dumpTable(replica.sql, "alpha")).toEqual([]);
  expect(
    await replica.sql`select relfilenode from pg_class where oid = 'public.beta'::regclass`,
  ).toMatchObject([file]);
  expect(await replica.sql`select table_name, field from public._sync_issues`).toMatchObject([
    { table_name: "beta", field: "two" },
  ]);
  const [comment] = await replica.sql`
    select obj_description('public.beta'::regclass) as of_table, col_description('public.beta'::regclass, attnum) as of_column
    from pg_attribute where attrelid = 'public.beta'::regclass and attname = 'one'`;
  expect(comment).toMatchObject({ of_table: "Beta\n\ntbl1", of_column: "One\n\nfld1, text" });
});

test("comments have the source's names of a table and its columns, and are updated without a rebuild", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const shop = sourceTable("tbl1", "Shop", { Name: "text", Price: "number" });
  await build(test, { tables: [shop] }, {});
  const follow = async () => {
    const catalog = await loadCatalog(replica);
    const plan = planSchema(catalog, { tables: [shop] }, SETTINGS);
    expect(plan.rebuild).toEqual([]);
    await changeShape(replica, epoch, catalog, plan);
  };
  const told = async () => {
    const [row] = await replica.sql`
      select obj_description('public.shop'::regclass) as shop, col_description('public.shop'::regclass, 3) as name,
        col_description('public.shop'::regclass, 4) as price`;
    return row;
  };
  expect(await told()).toEqual({
    shop: "Shop\n\ntbl1",
    name: "Name\n\nfld0, text",
    price: "Price\n\nfld1, number",
  });
  shop.description = "All we sell";
  Object.assign(shop.fields[0]!, {
    description: "As on the label",
    type: "long_text",
    sourceType: "multilineText",
  });
  await follow();
  const now = {
    shop: "Shop\n\ntbl1\n\nAll we sell",
    name: "Name\n\nfld0, multilineText\n\nAs on the label",
    price: "Price\n\nfld1, number",
  };
  expect(await told()).toEqual(now);
});

test("a table that the source deleted is dropped, with its issues and its recent-writes log", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const catalog = await build(test, { tables: [versioned] }, { tblV: [sourceRecord("rec1", { fld0: "x" })] });
  const plan = planSchema(catalog, { tables: [] }, SETTINGS);
  expect(plan.drop.map((spec) => spec.name)).toEqual(["versions"]);
  await changeShape(replica, epoch, catalog, plan);
  expect(await replica.sql`select to_regclass('public.versions') as gone`).toMatchObject([{ gone: null }]);
  expect(await replica.sql`select * from public._sync_issues`).toHaveLength(0);
  expect((await loadCatalog(replica)).size).toBe(0);
});

test("an issue stays until its cell is repaired, and is reported once", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const table = (await build(test, { tables: [versioned] })).get("tblV")!;
  const write = async (value: unknown) =>
    apply(replica, table, {
      readVersion: await takeReadVersion(replica),
      records: [sourceRecord("rec1", { fld0: value })],
      epoch,
    });
  const issues = () =>
    replica.sql`select table_name, record_id, field, value, seen_at from public._sync_issues`;
  await write("many");
  const [first] = await issues();
  expect(first).toMatchObject({
    table_name: "versions",
    record_id: "rec1",
    field: "version",
    value: '"many"',
  });
  await write("many");
  expect((await issues())[0]!.seen_at).toEqual(first!.seen_at);
  await write(7);
  expect(await issues()).toHaveLength(0);
});

test("_sync_meta reports a running sync while started_at is later than completed_at", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  await using reader = readerOf(test.readerUrl);
  const running = async () =>
    (
      await reader`select coalesce(started_at > completed_at, started_at is not null) as running,
      duration_last from _sync_meta`
    )[0]!;
  expect(await running()).toMatchObject({ running: false });
  await markSyncStarted(replica, epoch);
  expect(await running()).toMatchObject({ running: true });
  await markSyncCompleted(replica, epoch);
  expect(await running()).toMatchObject({ running: false, duration_last: expect.stringMatching(/^00:00:0/) });
  expect(await reader`select * from __sync_meta__`).toHaveLength(1);
});

test("a sync that ends without completing leaves _sync_meta as the last complete sync did", async () => {
  await using test = await testReplica();
  const { replica, epoch } = test;
  const meta = async () =>
    (await replica.sql`select *, started_at > completed_at as is_running from public._sync_meta`)[0]!;
  await markSyncStarted(replica, epoch);
  await markSyncEnded(replica, epoch);
  expect(await meta()).toMatchObject({ started_at: null, completed_at: null });
  await markSyncStarted(replica, epoch);
  await markSyncCompleted(replica, epoch);
  const completed = await meta();
  await markSyncEnded(replica, epoch);
  expect(await meta()).toEqual(completed);
  for (const end of [() => markSyncEnded(replica, epoch), () => claimEpoch(replica)]) {
    await markSyncStarted(replica, epoch);
    expect(await meta()).toMatchObject({ is_running: true });
    await end();
    const ended = await meta();
    expect(ended).toMatchObject({
      is_running: false,
      completed_at: completed.completed_at,
      duration_last: completed.duration_last,
    });
    expect(Math.abs(ended.started_at - completed.started_at)).toBeLessThanOrEqual(1);
  }
});

test("I8: the customer's role reads the tables, and can do nothing else", async () => {
  await using test = await testReplica();
  await using other = await testReplica();
  await build(test, { tables: [versioned] }, { tblV: [sourceRecord("rec1", { fld0: 1 })] });
  await using reader = readerOf(test.readerUrl);
  expect(await reader`select id, version::int from versions`).toMatchObject([{ id: "rec1", version: 1 }]);
  expect(await reader`select * from _sync_issues`).toHaveLength(0);
  const forbidden = [
    "insert into versions values ('x', now())",
    "update versions set version = 2",
    "delete from versions",
    "truncate versions",
    "drop table versions",
    "create table mine (a int)",
    "create temp table mine (a int)",
    "create schema mine",
    "create function f() returns int language sql as 'select 1'",
    "select lo_create(0)",
    "select lo_from_bytea(0, 'x')",
    "select pg_advisory_lock(1)",
    "select * from public_swap._state",
    "select nextval('public_swap._versions')",
    "select public_swap.claim()",
    "update _sync_meta set started_at = now()",
    "copy versions to program 'cat'",
    "create role mine",
  ];
  for (const statement of forbidden) {
    // A transaction of its own, made read-write: the role's default must not be what protects.
    const attempt = reader.begin("read write", (query) => query.unsafe(statement));
    await expect(attempt, statement).rejects.toMatchObject({
      code: expect.stringMatching(/^(42501|25006)$/),
    });
  }
  const elsewhere = new URL(other.ownerUrl);
  const own = new URL(test.readerUrl);
  elsewhere.username = own.username;
  elsewhere.password = own.password;
  for (const database of [elsewhere.pathname, "/postgres", "/template1"]) {
    elsewhere.pathname = database;
    await using intruder = readerOf(elsewhere.toString());
    await expect(intruder`select 1`, database).rejects.toMatchObject({ code: "42501" });
  }
});
