/** Schemas of any structure, one after the other, applied to a real replica: it ends with the tables of the last. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Catalog,
  changeShape,
  compileMapper,
  loadCatalog,
  mapRecords,
  planSchema,
  startBuild,
} from "../../../core/replica";
import { typeMap } from "../../../core/replica/type-map";
import type { FieldType, SourceSchema } from "../../../core/source";
import { readSchema } from "../../../core/source/airtable/schema";
import { anyText, codeOr, fuzz } from "../../support/fuzz";
import { putBuild } from "../../support/put-build";
import { type TestReplica, testReplica } from "../../support/replica";
import { wireSchema } from "../../support/wire-schema";

/** As many fields as the source allows, and more tables. */
const MOST_FIELDS = 500;
/** Airtable allows a thousand: SCHEMA_TABLES=1000 takes 30 s alone. */
const MANY_TABLES = Number(process.env.SCHEMA_TABLES ?? 250);

let replica: TestReplica;
beforeAll(async () => {
  replica = await testReplica();
});
afterAll(() => replica?.[Symbol.asyncDispose]());

const settings = fc.record({
  linkedRecordsAsText: fc.boolean(),
  lookupsAsText: fc.boolean(),
  attachmentViews: fc.boolean(),
});
type Settings = { linkedRecordsAsText: boolean; lookupsAsText: boolean; attachmentViews: boolean };

/** Checks `schema` as a sync does, and builds what is needed. */
async function follow({ replica, epoch }: TestReplica, schema: SourceSchema, as: Settings): Promise<Catalog> {
  const catalog = await loadCatalog(replica);
  await changeShape(replica, epoch, catalog, planSchema(catalog, schema, as));
  const renamed = await loadCatalog(replica);
  for (const spec of planSchema(renamed, schema, as).rebuild) {
    const build = await startBuild(replica, epoch, spec);
    const record = { id: "rec1", createdTime: "2024-01-01T00:00:00.000Z", fields: {} };
    await build.append(mapRecords(compileMapper(spec), [record], []));
    expect(await putBuild({ replica, epoch }, build, renamed.get(spec.tableId))).toBe(true);
  }
  return loadCatalog(replica);
}

/** The replica has these tables and columns, one row in each, and nothing remains to be done. */
async function expectFollowed(
  { replica }: TestReplica,
  schema: SourceSchema,
  as: Settings,
  catalog: Catalog,
) {
  expect([...catalog.keys()].sort()).toEqual(schema.tables.map((table) => table.id).sort());
  const plan = planSchema(catalog, schema, as);
  expect([plan.rebuild, plan.drop]).toEqual([[], []]);
  const made = await replica.sql<{ name: string; columns: string[] }[]>`
    select c.relname as name, array_agg(a.attname::text order by a.attname::text collate "C") as columns
    from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname !~ '^_'
    group by c.relname order by c.relname collate "C"`;
  const wanted = [...catalog.values()].map(({ spec }) => ({
    name: spec.name,
    columns: ["created_time", "id", ...spec.columns.map((column) => column.name)].sort(byBytes),
  }));
  expect(made.map((row) => ({ ...row }))).toEqual(wanted.sort((a, b) => byBytes(a.name, b.name)));
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

fuzz(
  "in any sequence of schemas, the replica gets the structure of each",
  30,
  fc.asyncProperty(
    fc.array(fc.tuple(wireSchema, settings), { minLength: 1, maxLength: 3 }),
    async (looks) => {
      for (const [answer, as] of looks) {
        const schema = codeOr(() => readSchema(answer));
        if (typeof schema === "string") continue;
        await expectFollowed(replica, schema, as, await follow(replica, schema, as));
      }
    },
  ),
);

test("many tables, and tables of 500 fields with any names, all exist", {
  timeout: 150_000,
}, async () => {
  await using large = await testReplica();
  const types = Object.keys(typeMap) as FieldType[];
  const names = fc.sample(anyText, { numRuns: MOST_FIELDS, seed: 1 });
  const field = (index: number) => ({
    id: `fld${index}`,
    name: names[index]!,
    type: types[index % types.length]!,
    sourceType: "any",
  });
  const table = (index: number, fields: number) => ({
    id: `tbl${index}`,
    name: names[index % 250]!,
    primaryFieldId: "fld0",
    fields: Array.from({ length: fields }, (_, at) => field(at)),
  });
  const schema = {
    tables: [
      ...Array.from({ length: 3 }, (_, index) => table(index, MOST_FIELDS)),
      ...Array.from({ length: MANY_TABLES - 3 }, (_, index) => table(index + 3, index % 3)),
    ],
  };
  const as = { linkedRecordsAsText: false, lookupsAsText: true, attachmentViews: false };
  await expectFollowed(large, schema, as, await follow(large, schema, as));
});
