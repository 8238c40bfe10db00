/**
 * The generated types as programs use them: compiled by the real compilers, with the real libraries, on the tables of
 * the real bases and of one whose names and texts are hostile.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { validate } from "@prisma/prisma-schema-wasm";
import Ajv2020 from "ajv/dist/2020";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { quoteIdent } from "../../../core/replica";
import { readSchema } from "../../../core/source/airtable/schema";
import { dataFolder, noDataReason } from "../../support/data";
import { countWithPrisma, momentsWithPrisma, PRISMA_FOLDER } from "../../support/prisma/client";
import {
  createSample,
  createSamples,
  filesOf,
  REAL,
  relationsOf,
  type Sample,
} from "../../support/sample-bases";
import { repoRoot } from "../../support/source-files";
import { ofDebian, pinned, runs } from "../../support/tools/table";

const PYTHON = "/usr/bin/python3";
const TIMEOUT_MS = 120_000;
const IN_TYPESCRIPT = runs(
  ...["drizzle-orm", "kysely", "zod"].map((name) => pinned(repoRoot, name, `${name}, with generated types`)),
);
const IN_PRISMA = runs(pinned(PRISMA_FOLDER, "prisma", "Prisma's client, with generated types"));
const IN_PYTHON = runs(
  ...["pydantic", "sqlalchemy"].map((name) => ofDebian(`python3-${name}`, `${name}, with generated types`)),
);

let releases: AsyncDisposableStack;
let folder: string;
let samples: Sample[];

beforeAll(async () => {
  releases = new AsyncDisposableStack();
  samples = await createSamples(releases);
  folder = mkdtempSync(join(tmpdir(), "basetide-types-"));
  releases.defer(() => rmSync(folder, { recursive: true }));
  symlinkSync(join(repoRoot, "node_modules"), join(folder, "node_modules"));
}, TIMEOUT_MS);
afterAll(() => releases.disposeAsync());

/** Zones on both sides of UTC. Their clocks skip and repeat some of the moments, and one skipped a whole day. */
const ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia"];
const MOMENTS = [
  ...["2026-07-01T12:00:00.123Z", "2026-07-01T00:30:00.000Z", "2026-06-30T23:30:00.000Z"],
  ...["2026-03-08T01:30:00.000Z", "2026-03-08T02:30:00.000Z", "2026-03-08T03:30:00.000Z"],
  ...["2026-11-01T00:30:00.000Z", "2026-11-01T01:30:00.000Z", "2026-11-01T02:30:00.000Z"],
  ...["2011-12-29T23:00:00.000Z", "2011-12-30T12:00:00.000Z", "2011-12-31T00:00:00.000Z"],
].sort();

/** A base with a record of each moment, on a server that has a zone of its own. */
async function createTimes(): Promise<Sample> {
  const fields = [
    { id: "fldDay00000000000", name: "Day", type: "date" },
    { id: "fldSeen0000000000", name: "Seen", type: "dateTime" },
  ];
  const table = { id: "tblTimes000000000", name: "Moments", primaryFieldId: fields[0]!.id, fields };
  const sample = await createSample(releases, "times", readSchema({ tables: [table] }), () =>
    MOMENTS.map((moment, index) => ({
      id: `rec${String(index).padStart(14, "0")}`,
      createdTime: moment,
      fields: { fldDay00000000000: moment.slice(0, 10), fldSeen0000000000: moment },
    })),
  );
  await sample.sql`do $$ begin
    execute format('alter database %I set timezone = %L', current_database(), 'Australia/Lord_Howe'); end $$`;
  return sample;
}

/** What each way to read has to find: the moments and the day of each row, and how many rows equal and follow it. */
const MOMENTS_READ = MOMENTS.map((moment, index) => [
  ...[moment, moment, moment.slice(0, 10)],
  ...[1, MOMENTS.length - index],
]);

test("TypeScript: times and days are right in every time zone, when read and as parameters", {
  ...IN_TYPESCRIPT,
  timeout: TIMEOUT_MS,
}, async () => {
  const sample = await createTimes();
  const own = join(folder, "times");
  mkdirSync(own);
  for (const lang of ["ts", "zod", "kysely", "drizzle"] as const) {
    const [{ path, text }] = filesOf(lang, sample);
    writeFileSync(join(own, path), text);
  }
  writeFileSync(join(own, "main.ts"), TIMES_PROGRAM);
  const options = {
    ...{ target: "ESNext", module: "Preserve", moduleResolution: "bundler", types: ["node"], noEmit: true },
    ...{ strict: true, noUnusedLocals: true, exactOptionalPropertyTypes: true, skipLibCheck: true },
  };
  writeFileSync(join(own, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["main.ts"] }));
  expect(await run(join(repoRoot, "node_modules/.bin/tsc"), "-p", own)).toBe("");
  for (const zone of ZONES) {
    const found = JSON.parse(await runIn(zone, "bun", join(own, "main.ts"), sample.url));
    const expected = Object.fromEntries(Object.keys(found).map((way) => [way, MOMENTS_READ]));
    // Rows that the driver read in the zone of the process.
    const plain = zone === "UTC" ? MOMENTS_READ : "refused";
    expect([zone, found]).toEqual([
      zone,
      { ...expected, "zod, pg as it is": plain, "zod, JSON": MOMENTS_READ },
    ]);
    expect(Object.keys(found)).toHaveLength(8);
  }
});

/** Prints, for each way to read, `[created_time, seen, day, equal, following]` of each row. */
const TIMES_PROGRAM = `
import { eq, gte } from "drizzle-orm";
import { drizzle } from "drizzle-orm/postgres-js";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import * as ts from "./basetide";
import * as orm from "./basetide-drizzle";
import { type Database, useUtc } from "./basetide-kysely";
import * as zod from "./basetide-zod";

interface Row { created_time: Date; seen: Date | null; day: string | null }
type Count = (time: Date) => Promise<number>;
const found: Record<string, unknown> = {};
const url = process.argv[2]!;

async function add(way: string, rows: Row[], equal: Count, following: Count) {
  const lines = rows.map(async ({ created_time, seen, day }) =>
    [created_time.toISOString(), seen?.toISOString(), day, await equal(created_time), await following(created_time)]);
  found[way] = await Promise.all(lines);
}

const pool = new pg.Pool({ connectionString: url, max: 1 });
const text = "select * from moments order by id";
const plain = (await pool.query(text)).rows;
const withPg = (sign: string) => async (time: Date) =>
  (await pool.query(\`select id from moments where created_time \${sign} $1\`, [time])).rowCount ?? 0;
try {
  const rows = plain.map((row) => zod.MomentsRow.parse(row));
  await add("zod, pg as it is", rows, withPg("="), withPg(">="));
} catch (error) {
  found["zod, pg as it is"] = String(error).includes("useUtc(pg)") ? "refused" : String(error);
}

const sql = postgres(url, { ...zod.utcOptions(), max: 1 });
const withSql = (sign: string) => async (time: Date) =>
  (await sql\`select id from moments where created_time \${sql.unsafe(sign)} \${time}\`).count;
const rows = await sql\`select * from moments order by id\`;
await add("zod, postgres.js", rows.map((row) => zod.MomentsRow.parse(row)), withSql("="), withSql(">="));
const sqlTs = postgres(url, { ...ts.utcOptions(), max: 1 });
const rowsTs = await sqlTs<ts.MomentsRow[]>\`select * from moments order by id\`;
await add("ts, postgres.js", rowsTs, withSql("="), withSql(">="));
const json = await sql\`select row_to_json(m) as row from moments as m order by id\`;
await add("zod, JSON", json.map(({ row }) => zod.MomentsRow.parse(row)), withSql("="), withSql(">="));

useUtc(pg);
const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
const withKysely = (sign: "=" | ">=") => async (time: Date) =>
  (await db.selectFrom("moments").select("id").where("created_time", sign, time).execute()).length;
const rowsKysely = await db.selectFrom("moments").selectAll().orderBy("id").execute();
await add("kysely", rowsKysely, withKysely("="), withKysely(">="));
zod.useUtc(pg);
const parsed = (await pool.query(text)).rows.map((row) => zod.MomentsRow.parse(row));
await add("zod, pg", parsed, withPg("="), withPg(">="));

const client = postgres(url, { max: 1 });
for (const [way, d] of [["drizzle, postgres.js", drizzle(client)], ["drizzle, pg", drizzlePg(pool)]] as const) {
  const { moments } = orm;
  // Both drivers have the same methods.
  const own = d as ReturnType<typeof drizzle>;
  await add(way, await own.select().from(moments).orderBy(moments.id),
    async (time) => (await own.select().from(moments).where(eq(moments.created_time, time))).length,
    async (time) => (await own.select().from(moments).where(gte(moments.created_time, time))).length);
}
await Promise.all([db.destroy(), client.end(), sql.end(), sqlTs.end()]);
console.log(JSON.stringify(found));
`;

test("TypeScript: tsc accepts every output, and the libraries read every table through it", {
  ...IN_TYPESCRIPT,
  timeout: TIMEOUT_MS,
}, async () => {
  for (const [index, sample] of samples.entries()) {
    const own = join(folder, `base${index}`);
    mkdirSync(own);
    for (const lang of ["ts", "zod", "kysely", "drizzle"] as const) {
      const [{ path, text }] = filesOf(lang, sample);
      writeFileSync(join(own, path), text);
    }
    writeFileSync(join(own, "main.ts"), tsProgram(sample));
  }
  const imports = samples.map((_, index) => `import { counts as base${index} } from "./base${index}/main";`);
  const calls = samples.map(({ url }, index) => `await base${index}(${JSON.stringify(url)})`);
  writeFileSync(
    join(folder, "all.ts"),
    `${imports.join("\n")}\nconsole.log(JSON.stringify([${calls.join(", ")}]));\n`,
  );
  const options = {
    ...{ target: "ESNext", module: "Preserve", moduleResolution: "bundler", types: ["node"], noEmit: true },
    ...{ strict: true, noUnusedLocals: true, exactOptionalPropertyTypes: true, skipLibCheck: true },
  };
  const config = { compilerOptions: options, files: ["all.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(repoRoot, "node_modules/.bin/tsc");
  const [faults, counts] = await Promise.all([run(tsc, "-p", folder), run("bun", join(folder, "all.ts"))]);
  expect(faults).toBe("");
  const expected = samples.map(({ tables, sql }) =>
    Promise.all(
      relationsOf(tables).map(async (name) => {
        const [row] = await sql`select count(*)::int as n from ${sql(name)}`;
        return [name, row!.n, row!.n, row!.n];
      }),
    ),
  );
  expect(JSON.parse(counts)).toEqual(await Promise.all(expected));
});

/**
 * Reads every table with Kysely, Drizzle and Zod, and returns how many rows each returned. The types are used for one
 * table: a compiler takes half a minute for the union of all of them.
 */
function tsProgram(sample: Sample): string {
  const { tables } = sample;
  const all = relationsOf(tables);
  const first = tables[0]!.name;
  const [{ text }] = filesOf("drizzle", sample);
  const variable = text.split("\n").find((line) => line.includes(`= pg.pgTable(${JSON.stringify(first)},`));
  const table = `schema.${variable!.split(" ")[2]}`;
  const writeLine = text
    .split("\n")
    .find((line) => line.includes(`= writes.table(${JSON.stringify(first)},`));
  const writeVariable = writeLine!.split(" ")[2];
  return `
import { getTableName, is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/postgres-js";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import type { z } from "zod";
import type * as types from "./basetide";
import * as all from "./basetide-drizzle";
import type { Database, WriteDatabase } from "./basetide-kysely";
import * as schemas from "./basetide-zod";

// The sample has no views to write to.
const isRead = (one: unknown) => !(is(one, PgTable) && getTableConfig(one).schema !== undefined);
const schema = Object.fromEntries(Object.entries(all).filter(([, one]) => isRead(one))) as unknown as typeof all;

type AnyRow = Record<string, unknown>;
type AnyQuery = { findMany(config: object): Promise<unknown[]> };

export async function counts(url: string) {
  schemas.useUtc(pg);
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  const client = postgres(url, { max: 1, onnotice() {} });
  const orm = drizzle(client, { schema });
  const tables: unknown[] = Object.values(schema);
  const byName = new Map(tables.flatMap((one) => (is(one, PgTable) ? [[getTableName(one), one] as const] : [])));
  const anyDb = db as unknown as Kysely<Record<string, AnyRow>>;
  const rowSchemas = Object.entries<unknown>(schemas).filter(([name]) => name.endsWith("Row")) as [string, z.ZodObject][];
  const found: [string, number, number, number][] = [];
  for (const name of ${JSON.stringify(all)}) {
    const rows = await anyDb.selectFrom(name).selectAll().execute();
    const viaOrm: AnyRow[] = await orm.select().from(byName.get(name)!);
    const columns = Object.keys(viaOrm[0] ?? {}).sort().join();
    const fits = rowSchemas.filter(([, one]) => columns === "" || Object.keys(one.shape).sort().join() === columns);
    found.push([name, rows.length, viaOrm.length, rows.filter((row) => fits.some(([, one]) => one.parse(row))).length]);
  }
  const queries = orm.query as unknown as Record<string, AnyQuery>;
  const relations = orm._.schema as unknown as Record<string, { relations: object }>;
  for (const [key, query] of Object.entries(queries)) {
    const related = Object.keys(relations[key]!.relations).map((one) => [one, true]);
    await query.findMany({ limit: 1, with: Object.fromEntries(related) });
  }

  const row: types.Rows[${JSON.stringify(first)}] | undefined = await db
    .selectFrom(${JSON.stringify(first)}).selectAll().executeTakeFirst();
  const [other] = await orm.select().from(${table}).limit(1);
  // Both have a Date.
  row?.created_time.getTime();
  other?.created_time.getTime();
  // @ts-expect-error: a text is not the id of a record
  if (row) row.id = String(row.id);
  // @ts-expect-error: no column can be written
  db.updateTable(${JSON.stringify(first)}).set({ created_time: new Date() });
  const writes = db as unknown as Kysely<WriteDatabase>;
  // @ts-expect-error: Airtable computes it
  writes.withSchema("write").updateTable(${JSON.stringify(first)}).set({ created_time: new Date() });
  // @ts-expect-error: Airtable gives it
  orm.insert(all.${writeVariable}).values({ id: "rec" });
  await Promise.all([db.destroy(), client.end()]);
  return found;
}
`;
}

test("Prisma accepts the schema", () => {
  for (const sample of samples) {
    const [{ text }] = filesOf("prisma", sample);
    validate(JSON.stringify({ prismaSchema: [["schema.prisma", text]], noColor: true }));
  }
});

const NO_PRISMA = "the client of Prisma has 300 MB of packages: set PRISMA=1 to install and run it";

test("Prisma's client reads every table and relation through the schema", {
  ...IN_PRISMA,
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!process.env.PRISMA, NO_PRISMA);
  for (const sample of samples) {
    const [{ text }] = filesOf("prisma", sample);
    const names = relationsOf(sample.tables);
    const [expected] = await sample.sql.unsafe(
      `select json_object_agg(name, n) as counts from (${names
        .map((name) => `select '${name}' as name, (select count(*)::int from ${quoteIdent(name)}) as n`)
        .join(" union all ")}) as c`,
    );
    expect(await countWithPrisma(text, sample.url)).toEqual(expected!.counts);
  }
});

test("Prisma: times and days are right in every time zone, when read and as parameters", {
  ...IN_PRISMA,
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!process.env.PRISMA, NO_PRISMA);
  const sample = await createTimes();
  const [{ text }] = filesOf("prisma", sample);
  const found = await momentsWithPrisma(text, ZONES, sample.url);
  expect(found).toEqual(ZONES.map(() => MOMENTS_READ));
});

test("JSON Schema describes every row as Postgres writes it in JSON", async () => {
  for (const sample of samples) {
    const [{ text }] = filesOf("jsonschema", sample);
    const schema = JSON.parse(text);
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats(ajv);
    ajv.addSchema({ ...schema, $id: "base" });
    for (const [name, one] of Object.entries<{ "x-table"?: string }>(schema.$defs)) {
      if (!one["x-table"]) continue;
      const rows = await sample.sql`select row_to_json(t) as row from ${sample.sql(one["x-table"])} as t`;
      const check = ajv.getSchema(`base#/$defs/${name}`)!;
      for (const { row } of rows) expect([check(row), check.errors]).toEqual([true, null]);
      expect(check({ id: 1 })).toBe(false);
    }
  }
});

test("dbt: the staging models select every column", async () => {
  for (const sample of samples) {
    const all = filesOf("dbt", sample);
    const described = parse(all.find(({ path }) => path === "staging.yml")!.text).models;
    expect(described).toHaveLength(sample.tables.length);
    for (const { path, text } of all.filter((file) => file.path.endsWith(".sql"))) {
      const sql = text.replace(/\{\{ source\('[^']*', '([^']*)'\) \}\}/, (_, name) => quoteIdent(name));
      const columns = (await sample.sql.unsafe(sql).describe()).columns.map(({ name }) => name);
      const model = described.find(({ name }: { name: string }) => `${name}.sql` === path);
      expect(columns.sort()).toEqual(model.columns.map(({ name }: { name: string }) => name).sort());
    }
  }
});

test("PostgREST: every link is a function of its record, and a second run replaces them", async () => {
  for (const sample of samples) {
    const { sql, tables } = sample;
    const [{ text }] = filesOf("postgrest", sample);
    await sql.unsafe(text);
    await sql.unsafe(text);
    const functions = await sql<{ name: string; table: string }[]>`
      select p.oid::regproc::text as name, t.typname as table
      from pg_proc as p join pg_type as t on t.oid = p.proargtypes[0]
      where obj_description(p.oid, 'pg_proc') = 'Relation of Basetide'`;
    const known = new Set(tables.map(({ tableId }) => tableId));
    const links = tables.flatMap(({ columns }) =>
      columns.filter(({ type, linkedTableId }) => type === "links" && known.has(linkedTableId ?? "")),
    );
    expect(functions).toHaveLength(links.length);
    let linked = 0;
    for (const { name, table } of functions) {
      const [row] = await sql.unsafe(`
        select count(*)::int as n, count(*) filter (where strpos(to_jsonb(t)::text, l.id) > 0)::int as linked
        from ${quoteIdent(table)} as t cross join lateral ${name}(t) as l`);
      expect([name, row!.linked]).toEqual([name, row!.n]);
      linked += row!.n;
      const column = name.replace(/^.*\.|"|__records$/g, "");
      const found = await sql.unsafe(`
        select to_jsonb(t) -> '${column}' as cell, array(select l.id from ${name}(t) with ordinality as l order by ordinality) as ids
        from ${quoteIdent(table)} as t`);
      for (const { cell, ids } of found.filter((one) => Array.isArray(one.cell)))
        expect([name, ids]).toEqual([name, cell.filter((id: string) => ids.includes(id))]);
    }
    // What PostgREST takes for a relation; with one row at most, the relation is an object.
    const faults = await sql`
      select p.proname from pg_proc as p
      where obj_description(p.oid, 'pg_proc') = 'Relation of Basetide' and not (
        p.proretset and p.pronargs = 1 and p.provolatile = 's'
        and p.prorettype in (select reltype from pg_class) and p.prorows = case when p.proname ~ '__records$' then 10 else 1 end)`;
    expect([...faults]).toEqual([]);
    if (!REAL.includes(sample.name)) expect(linked).toBeGreaterThan(0);
  }
});

test("Hasura: the requests have the form of its published types", { timeout: TIMEOUT_MS }, async () => {
  const own = join(folder, "hasura");
  mkdirSync(own);
  const requests = samples.map((sample) => {
    const [{ text }] = filesOf("hasura", sample);
    return `check(${text.trim()});`;
  });
  writeFileSync(join(own, "main.ts"), `${HASURA_PROGRAM}${requests.join("\n")}\n`);
  const options = {
    ...{ target: "ESNext", module: "Preserve", moduleResolution: "bundler", noEmit: true, strict: true },
    ...{ skipLibCheck: true, types: [] },
  };
  const config = { compilerOptions: options, files: ["main.ts"] };
  writeFileSync(join(own, "tsconfig.json"), JSON.stringify(config));
  expect(await run(join(repoRoot, "node_modules/.bin/tsc"), "-p", own)).toBe("");
});

/** The types of metadata; requests have the name of a source as well. */
const HASURA_PROGRAM = `
import type { ManualArrayRelationship, ManualObjectRelationship, MetadataTable } from "hasura-metadata-types";

interface Table { schema: string; name: string }
type Related<T extends { using: { manual_configuration: object } }> = Omit<T, "using"> & {
  source: string;
  table: Table;
  using: { manual_configuration: Omit<T["using"]["manual_configuration"], "remote_table"> & { remote_table: Table } };
};
type Request =
  | { type: "pg_track_table"; args: Omit<MetadataTable, "table"> & { source: string; table: Table } }
  | { type: "pg_create_object_relationship"; args: Related<ManualObjectRelationship> }
  | { type: "pg_create_array_relationship"; args: Related<ManualArrayRelationship> };
function check(request: { type: "bulk_keep_going"; args: Request[] }) {}
`;

test("Python: every row that psycopg reads is a model of Pydantic, and SQLAlchemy queries every relationship", {
  ...IN_PYTHON,
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!hasPython(), NO_PYTHON);
  const bases = samples.map((sample, index) => {
    for (const lang of ["pydantic", "sqlalchemy"] as const) {
      const [{ path, text }] = filesOf(lang, sample);
      writeFileSync(join(folder, path.replace(".py", `_${index}.py`)), text);
    }
    return { url: sample.url, tables: relationsOf(sample.tables) };
  });
  writeFileSync(join(folder, "main.py"), PYTHON_PROGRAM);
  const found = JSON.parse(await run(PYTHON, join(folder, "main.py"), JSON.stringify(bases)));
  expect(found).toEqual(
    samples.map(({ tables }) => ({
      tables: tables.map(({ name }) => name).sort(),
      relationships: tables.flatMap(({ columns }) => columns).filter(({ type }) => type === "links").length,
    })),
  );
});

const PYTHON_LIBRARIES = "pydantic, psycopg, sqlalchemy, psycopg2";
const NO_PYTHON = `one of these libraries of Python is not installed: ${PYTHON_LIBRARIES}`;
const hasPython = () => Bun.spawnSync([PYTHON, "-c", `import ${PYTHON_LIBRARIES}`]).exitCode === 0;

/** Fails on a row that no model accepts; prints the tables and the number of relationships that SQLAlchemy knows. */
const PYTHON_PROGRAM = `
import importlib, json, sys
import psycopg
from psycopg.rows import dict_row
import pydantic
import sqlalchemy as sa
from sqlalchemy import orm

def columns(model):
    fields = getattr(model, "model_fields", None) or model.__fields__
    return {field.alias or name for name, field in fields.items()}

def check_models(types, base):
    models = [one for one in vars(types).values() if isinstance(one, type) and issubclass(one, pydantic.BaseModel)]
    with psycopg.connect(base["url"], row_factory=dict_row) as db:
        for table in base["tables"]:
            rows = db.execute(psycopg.sql.SQL("select * from {}").format(psycopg.sql.Identifier(table))).fetchall()
            names = {name for name in (rows[0] if rows else []) if not name.endswith("__files")}
            fitting = [model for model in models if rows and columns(model) == names]
            assert fitting or not rows, (table, rows[:1])
            for row in rows:
                fitting[0](**row)

def query_all(types, base):
    engine = sa.create_engine(base["url"].replace("postgres://", "postgresql+psycopg2://"))
    tables, relationships = [], 0
    with orm.Session(engine) as session:
        for mapper in types.Base.registry.mappers:
            tables.append(mapper.class_.__tablename__)
            found = session.query(mapper.class_).limit(3).all()
            for relation in mapper.relationships:
                relationships += 1
                for one in found:
                    linked = getattr(one, relation.key)
                    if isinstance(linked, list) and linked:
                        assert one.id is not None and linked[0].id
        for table in types.Base.metadata.tables.values():
            session.execute(sa.select(table).limit(1)).all()
    engine.dispose()
    return {"tables": sorted(tables), "relationships": relationships}

results = []
for index, base in enumerate(json.loads(sys.argv[1])):
    check_models(importlib.import_module(f"basetide_pydantic_{index}"), base)
    results.append(query_all(importlib.import_module(f"basetide_sqlalchemy_{index}"), base))
print(json.dumps(results))
`;

test("Python: times and days are right in every time zone, when read and as parameters", {
  ...IN_PYTHON,
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!hasPython(), NO_PYTHON);
  const sample = await createTimes();
  for (const lang of ["pydantic", "sqlalchemy"] as const) {
    const [{ path, text }] = filesOf(lang, sample);
    writeFileSync(join(folder, path.replace(".py", "_times.py")), text);
  }
  writeFileSync(join(folder, "times.py"), PYTHON_TIMES);
  for (const zone of ZONES) {
    const found = JSON.parse(await runIn(zone, PYTHON, join(folder, "times.py"), sample.url));
    expect([zone, found]).toEqual([zone, { pydantic: MOMENTS_READ, sqlalchemy: MOMENTS_READ }]);
  }
});

const PYTHON_TIMES = `
import datetime, json, sys
import psycopg
from psycopg.rows import dict_row
import sqlalchemy as sa
from sqlalchemy import orm
import basetide_pydantic_times as models
import basetide_sqlalchemy_times as tables

def line(row, equal, following):
    iso = lambda time: datetime.datetime.utcfromtimestamp(time.timestamp()).isoformat(timespec="milliseconds") + "Z"
    return [iso(row.created_time), iso(row.seen), row.day.isoformat(), equal(row.created_time), following(row.created_time)]

found = {}
with psycopg.connect(sys.argv[1], row_factory=dict_row, options="-c TimeZone=UTC") as db:
    rows = [models.Moments(**row) for row in db.execute("select * from moments order by id")]
    count = lambda sign: lambda time: db.execute(f"select id from moments where created_time {sign} %s", [time]).rowcount
    found["pydantic"] = [line(row, count("="), count(">=")) for row in rows]

engine = sa.create_engine(sys.argv[1].replace("postgres://", "postgresql+psycopg2://"))
with orm.Session(engine) as session:
    column = tables.Moments.created_time
    equal = lambda time: session.query(tables.Moments).filter(column == time).count()
    following = lambda time: session.query(tables.Moments).filter(column >= time).count()
    rows = session.query(tables.Moments).order_by(tables.Moments.id).all()
    found["sqlalchemy"] = [line(row, equal, following) for row in rows]
print(json.dumps(found))
`;

test("the real bases are among the samples", ({ skip }) => {
  if (!dataFolder) return skip(noDataReason);
  expect(samples.map(({ name }) => name)).toEqual(expect.arrayContaining(REAL));
});

/** @returns its output; @throws with all it printed if it fails */
async function run(...command: string[]): Promise<string> {
  return runIn(process.env.TZ, ...command);
}

/** The same in a time zone. */
async function runIn(zone: string | undefined, ...command: string[]): Promise<string> {
  const env = { ...process.env, ...(zone === undefined ? {} : { TZ: zone }) };
  const child = Bun.spawn(command, { cwd: folder, env, stdout: "pipe", stderr: "pipe" });
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${out}${errors}`);
  return out;
}
