/** A live table stays through every change, with its rows, and all objects on it. */
import fc from "fast-check";
import type postgres from "postgres";
import { expect, test, vi } from "vitest";
import {
  type CatalogTable,
  compareBuild,
  fillColumns,
  loadCatalog,
  mergeBuild,
  planSchema,
  startBuild,
} from "../../../core/replica";
import type { MergeOptions } from "../../../core/replica/merge";
import type { Row } from "../../../core/replica/spec";
import type { FieldType } from "../../../core/source";
import { until } from "../../support/poll";
import { putBuild } from "../../support/put-build";
import { dumpTable, readerOf, type TestReplica, testReplica } from "../../support/replica";
import { sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 120_000 });

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const ALL: MergeOptions = { seen: Number.MAX_SAFE_INTEGER, issues: [], most: null, compared: null };

/** Builds a copy of the table with these fields; `forced`: also if it has them already. */
async function built({ replica, epoch }: TestReplica, fields: Record<string, FieldType>, rows: Row[]) {
  const catalog = await loadCatalog(replica);
  const plan = planSchema(catalog, { tables: [sourceTable("tblO", "Orders", fields)] }, SETTINGS);
  const live = catalog.get("tblO");
  const build = await startBuild(replica, epoch, plan.rebuild[0] ?? live!.spec);
  await build.append(rows.map((row) => ({ created_time: "2024-05-01T12:34:56", ...row })));
  return { build, live: live as CatalogTable };
}

/** A new table with these. */
async function swapped(made: TestReplica, fields: Record<string, FieldType>, rows: Row[]): Promise<void> {
  const { build, live } = await built(made, fields, rows);
  expect(await putBuild(made, build, live)).toBe(true);
}

async function merged(
  made: TestReplica,
  fields: Record<string, FieldType>,
  rows: Row[],
  options: Partial<MergeOptions> = {},
) {
  const { build, live } = await built(made, fields, rows);
  return (await mergeBuild(made.replica, made.epoch, build, live, { ...ALL, ...options })).merging;
}

const rowsOf = (made: TestReplica) => dumpTable(made.replica.sql, "orders");
const oidOf = async (sql: postgres.Sql, name: string) =>
  (await sql`select ${name}::regclass::oid::int as oid`)[0]!.oid as number;

test("a build that an earlier attempt has left over is replaced, whatever its columns", async () => {
  await using made = await testReplica();
  await built(made, { Price: "number", Old: "text" }, [{ id: "rec1", price: 1, old: "a" }]);
  await swapped(made, { Price: "text" }, [{ id: "rec2", price: "two" }]);
  expect(await dumpTable(made.replica.sql, "orders")).toMatchObject([{ id: "rec2", price: "two" }]);
});

test("a table that was changed in SQL is made equal to the source; what prevents that is said, with the remedy", async () => {
  await using made = await testReplica();
  const { sql } = made.replica;
  const fields: Record<string, FieldType> = { Name: "text", Tags: "multiple_select", Done: "checkbox" };
  const rows: Row[] = [
    { id: "rec1", name: "Ada", tags: ["a", "b"], done: true },
    { id: "rec2", name: "Bob", tags: null, done: false },
    { id: "rec3", name: null, tags: [], done: true },
  ];
  await swapped(made, fields, rows);
  const whole = await rowsOf(made);
  await sql.unsafe(`alter table public.orders drop column tags; delete from public.orders where id = 'rec1';
    update public.orders set name = 'changed' where id = 'rec2'; insert into public.orders values ('recX', now(), 'new', true)`);
  expect(await merged(made, fields, rows)).toBe("merged");
  const byName = (all: unknown[]) => all.map((row) => Object.entries(row as object).toSorted());
  expect(byName(await rowsOf(made))).toEqual(byName(whole));
  // Nothing differs: no row is written.
  const written = async () => (await sql`select max(xmin::text::bigint)::int as x from public.orders`)[0]!.x;
  const last = await written();
  expect(await merged(made, fields, rows)).toBe("merged");
  expect(await written()).toBe(last);
  await sql.unsafe("alter table public.orders alter column done type text");
  expect(await merged(made, fields, rows)).toBe("merged");
  expect(byName(await rowsOf(made))).toEqual(byName(whole));
  const oid = await oidOf(sql, "public.orders");
  expect(await merged(made, { ...fields, Done: "text" }, rows)).toBe("merged");
  expect(await merged(made, { Name: "text" }, [{ id: "rec1", name: "Ada" }])).toBe("merged");
  expect((await rowsOf(made)).map((row) => Object.keys(row as object))).toEqual([
    ["id", "created_time", "name"],
  ]);
  expect(await oidOf(sql, "public.orders")).toBe(oid);

  const obstacleTo = async (wanted: Record<string, FieldType>) => {
    const { build, live } = await built(made, wanted, []);
    const { merging, obstacle } = await mergeBuild(made.replica, made.epoch, build, live, ALL);
    expect([Object.keys(wanted), merging, (await rowsOf(made)).length]).toEqual([
      Object.keys(wanted),
      "unlike",
      1,
    ]);
    return obstacle!;
  };
  const remedied = async (obstacle: string) => {
    await sql.unsafe(obstacle.slice(obstacle.indexOf(": ") + 2));
    expect(await merged(made, { Name: "text", More: "text" }, [{ id: "rec1", name: "Ada", more: "m" }])).toBe(
      "merged",
    );
  };
  await sql`alter table public.orders add column more int`;
  const taken = await obstacleTo({ Name: "text", More: "text" });
  expect(taken).toMatch(
    /^the new column more has the name of a column that Basetide did not create: alter table /,
  );
  await remedied(taken);
  await sql`alter table public.orders drop constraint "_tblO_pkey"`;
  const keyless = await obstacleTo({ Name: "text", More: "text" });
  expect(keyless).toMatch(/^its primary key is missing: alter table /);
  await remedied(keyless);
  await sql`alter table public.orders drop column created_time`;
  await remedied(await obstacleTo({ Name: "text", More: "text" }));
  const [used] =
    await sql`select count(*)::int as n from pg_attribute where attrelid = 'public.orders'::regclass and attnum > 0`;
  const columns = Array.from({ length: 1600 - used!.n }, (_, nth) => `add column c${nth} int`).join(", ");
  await sql.unsafe(`alter table public.orders ${columns}`);
  await sql.unsafe(`alter table public.orders ${columns.replaceAll(/add (column c\d+) int/g, "drop $1")}`);
  expect(await obstacleTo({ Name: "text", More: "number" })).toMatch(
    /^Postgres has no room for another column: .*operator base rebuild$/,
  );
});

test("I6: a large number of values of a new column is filled under another name, and appears at once", async () => {
  await using made = await testReplica();
  const { sql } = made.replica;
  const ids = Array.from({ length: 5000 }, (_, index) => `rec${index}`);
  await swapped(
    made,
    { Name: "text" },
    ids.map((id) => ({ id, name: "n" })),
  );
  const { build, live } = await built(
    made,
    { Name: "text", More: "text", Flag: "checkbox" },
    ids.map((id, index) => ({ id, name: "n", more: `more ${id}`, flag: index > 0 })),
  );
  await using reader = readerOf(made.readerUrl);
  let isOver = false;
  const seen: string[] = [];
  const watching = (async () => {
    while (!isOver) {
      const rows =
        await reader`select to_jsonb(o) as row from orders as o where id in ('rec0', 'rec2500', 'rec4999') order by id`;
      const known = rows.filter(({ row }) => "more" in row);
      if (known.some(({ row }) => row.more !== `more ${row.id}` || row.flag !== (row.id !== "rec0")))
        seen.push("half");
      if (known.length > 0) seen.push("whole");
    }
  })();
  const options = { ...ALL, most: 100 };
  const { replica, epoch } = made;
  expect(await mergeBuild(replica, epoch, build, live, options)).toMatchObject({ merging: "large" });
  let batches = 0;
  const filled = await fillColumns(replica, epoch, build, live, () => {
    batches++;
  });
  expect(filled).toBe(5000);
  expect(batches).toBeGreaterThan(2);
  // Written after they were filled.
  await build.append([
    { id: "rec7", created_time: "2024-05-01T12:34:56", name: "n", more: "later", flag: true },
    { id: "recNew", created_time: "2024-05-01T12:34:56", name: "new", more: "new", flag: true },
  ]);
  // rec7 and recNew: all others have been filled.
  expect(await mergeBuild(replica, epoch, build, live, options)).toEqual({
    merging: "merged",
    obstacle: null,
    inserted: 1,
    updated: 1,
    deleted: 0,
  });
  await until(async () => seen.includes("whole"), { what: "the column is seen", timeoutMs: 30_000 });
  isOver = true;
  await watching;
  expect(seen).not.toContain("half");
  expect([
    ...(await sql`select count(*)::int as n, count(*) filter (where more = 'more ' || id)::int as same from public.orders`),
  ]).toEqual([{ n: 5001, same: 4999 }]);
  expect([
    ...(await sql`select attname from pg_attribute where attname ~ '^_filling' and not attisdropped`),
  ]).toEqual([]);
});

/** Longer than the catalog allows, and not compressible. */
const LONG = Array.from({ length: 1000 }, (_, index) => Bun.hash(String(index)).toString(36)).join("");

const cells: Record<string, [FieldType, fc.Arbitrary<Row[string]>]> = {
  a: ["text", fc.constantFrom(null, LONG, "", "x", 'it\'s \\ "q" %', "NULL")],
  b: ["checkbox", fc.boolean()],
  c: ["number", fc.constantFrom(null, 0, 1.5, -3)],
  d: ["multiple_select", fc.constantFrom(null, [], ["x"], ["{", "a,b", "'\"", "NULL"])],
  e: ["date", fc.constantFrom(null, "2024-05-01", "0001-01-01")],
};
/** Other types that the fields may have had. */
const OTHER: Record<string, FieldType> = { a: "number", b: "text", c: "text", d: "number", e: "text" };
const row = fc.record({
  id: fc.constantFrom("rec1", "rec2", "rec3", "rec4", "rec5"),
  ...Object.fromEntries(Object.entries(cells).map(([name, [, value]]) => [name, value])),
});
const rows = fc.uniqueArray(row, { selector: ({ id }) => id, maxLength: 5 });

test("property: whatever the live table contains, after the merge it equals the rebuilt one", async () => {
  await using made = await testReplica();
  const names = Object.keys(cells);
  const fieldsOf = (some: string[]) => Object.fromEntries(some.map((name) => [name, cells[name]![0]]));
  await fc.assert(
    fc.asyncProperty(
      rows,
      rows,
      fc.subarray(names),
      fc.constantFrom(0, 1, 2, null),
      fc.constantFrom("", "drop column a", "drop column if exists e, add column own text default 'o'"),
      fc.boolean(),
      fc.subarray(names),
      fc.boolean(),
      async (before, after, known, most, damage, isCompared, retyped, isLosing) => {
        const { replica, epoch } = made;
        const { sql } = replica;
        await sql`delete from public_swap._tables`;
        await sql`drop table if exists public.orders`;
        // The ids of fields are their positions.
        const first = names.slice(0, known.length);
        const pick = (all: typeof before, some: string[]) =>
          all.map(
            (one) => Object.fromEntries(["id", ...some].map((name) => [name, one[name as "id"]])) as Row,
          );
        // Some have another type, and one is deleted.
        const others = first.filter((name) => retyped.includes(name));
        const was = { ...fieldsOf(first), ...Object.fromEntries(others.map((name) => [name, OTHER[name]!])) };
        const isDeleting = isLosing && first.length === names.length;
        await swapped(
          made,
          isDeleting ? { ...was, gone: "text" } : was,
          pick(before, first).map((one) => ({
            ...one,
            ...Object.fromEntries(others.map((name) => [name, OTHER[name] === "text" ? "t" : 7])),
          })),
        );
        const isDamaged = damage !== "" && (damage.includes("if exists") || first.includes("a"));
        if (isDamaged) await sql.unsafe(`alter table public.orders ${damage}`);
        const oid = await oidOf(sql, "public.orders");
        const { build, live } = await built(made, fieldsOf(names), pick(after, names));
        // The recent-writes log has what is written after the comparison.
        const put = async () => {
          const compared = isCompared ? await compareBuild(replica, epoch, build, live, 0) : null;
          return mergeBuild(replica, epoch, build, live, { ...ALL, most, compared });
        };
        let { merging } = await put();
        if (merging === "large") {
          await fillColumns(replica, epoch, build, live);
          ({ merging } = await put());
        }
        expect(merging).toBe("merged");
        const found = await sql.unsafe(
          `select to_jsonb(o) - 'created_time' - 'own' as row from public.orders as o order by id`,
        );
        const wanted = pick(after, names).toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
        expect(found.map((one) => one.row)).toEqual(wanted);
        expect(await oidOf(sql, "public.orders")).toBe(oid);
      },
    ),
    { numRuns: 40 },
  );
});
