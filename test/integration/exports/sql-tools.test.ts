/**
 * Programs of the field that read a database's description, on sample bases: the drivers of Power BI, Excel, Metabase and
 * Superset find every table, column and row; generators of code do, or fail as `docs/types-in-code.md` says.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { quoteIdent } from "../../../core/replica";
import { node } from "../../support/node";
import { countWithPrisma, PRISMA_FOLDER, pullWithPrisma } from "../../support/prisma/client";
import { createSamples, REAL, relationsOf, type Sample } from "../../support/sample-bases";
import { scratchFolder } from "../../support/scratch";
import { repoRoot } from "../../support/source-files";
import {
  type GeneratorName,
  generate,
  generators,
  runInTools,
  TOOLS_FOLDER,
} from "../../support/tools/generators";
import { ofDebian, pinned, runs, type Tool } from "../../support/tools/table";

const PYTHON = "/usr/bin/python3";
const JDBC_DRIVER = "/usr/share/java/postgresql.jar";
const TIMEOUT_MS = 300_000;
/** The column that a rename leaves on Postgres 18. */
const ALIAS = "old_name";

let releases: AsyncDisposableStack;
let samples: Sample[];
let folder: string;

beforeAll(async () => {
  releases = new AsyncDisposableStack();
  folder = scratchFolder("sql-tools");
  samples = await createSamples(releases, ["hostile", "names alike", ...REAL]);
  for (const { sql, tables } of samples) {
    const [{ name, columns }] = tables as [Sample["tables"][number]];
    const [row] = await sql`show server_version_num`;
    if (Number(row!.server_version_num) < 180_000) continue;
    await sql.unsafe(
      `alter table ${quoteIdent(name)} add column ${ALIAS} text generated always as (${quoteIdent(columns[0]!.name)}::text) virtual`,
    );
  }
}, TIMEOUT_MS);
afterAll(() => releases.disposeAsync());

interface Counts {
  tables: number;
  columns: number;
  rows: number;
}

async function countsOf({ sql, tables }: Sample): Promise<Counts> {
  const names = relationsOf(tables);
  const [row] = await sql`
    select count(*)::int as columns from pg_attribute
    where attrelid = any (${names.map((name) => quoteIdent(name))}::regclass[]) and attnum > 0 and not attisdropped`;
  const counts = names.map(
    async (name) => (await sql`select count(*)::int as n from ${sql(`public.${name}`)}`)[0]!.n,
  );
  const rows = (await Promise.all(counts)).reduce((sum, n) => sum + n, 0);
  return { tables: names.length, columns: row!.columns, rows };
}

const readers: Record<string, { tool: Tool; missing(): string | false; words(urls: URL[]): string[] }> = {
  "JDBC, as Metabase, DBeaver and Tableau read": {
    tool: ofDebian("libpostgresql-jdbc-java", "JDBC driver: every table, column and row"),
    missing: () =>
      !(Bun.which("javac") && existsSync(JDBC_DRIVER)) && "libpostgresql-jdbc-java or a JDK is missing",
    words: (urls) => [
      ...["java", "-cp", JDBC_DRIVER, write("Reader.java", JDBC)],
      ...urls.flatMap(({ host, pathname, username, password }) => [
        ...[`jdbc:postgresql://${host}${pathname}`, username, decodeURIComponent(password)],
      ]),
    ],
  },
  "ODBC, as Power BI and Excel read": {
    tool: ofDebian("odbc-postgresql", "ODBC driver: every table, column and row"),
    missing: () => !imports("pyodbc") && "python3-pyodbc or odbc-postgresql is not installed",
    words: (urls) => [
      ...[PYTHON, write("odbc_reader.py", ODBC)],
      ...urls.map(
        ({ hostname, port, pathname, username, password }) =>
          `DRIVER={PostgreSQL Unicode};SERVER=${hostname};PORT=${port};DATABASE=${pathname.slice(1)};UID=${username};PWD={${decodeURIComponent(password)}}`,
      ),
    ],
  },
  "SQLAlchemy's inspector, as Superset reads": {
    tool: ofDebian("python3-sqlalchemy", "SQLAlchemy's inspector: every table, column and row"),
    missing: () => !imports("sqlalchemy, psycopg2") && "sqlalchemy or psycopg2 is not installed",
    words: (urls) => [
      ...[PYTHON, write("superset_reader.py", SUPERSET)],
      ...urls.map(({ href }) => href.replace("postgres://", "postgresql+psycopg2://")),
    ],
  },
};

const imports = (names: string) => Bun.spawnSync([PYTHON, "-c", `import ${names}`]).exitCode === 0;

for (const [name, { tool, missing, words }] of Object.entries(readers)) {
  test(`${name}: every table, view, column and row`, {
    ...runs(tool),
    timeout: TIMEOUT_MS,
  }, async ({ skip }) => {
    const reason = missing();
    skip(Boolean(reason), String(reason));
    // One start of the program for all bases.
    const lines = (await run(words(samples.map(({ url }) => new URL(url))))).trim().split("\n");
    const expected = await Promise.all(samples.map(countsOf));
    const named = (counts: unknown[]) => counts.map((count, nth) => [samples[nth]?.name, count]);
    expect(named(lines.map((line) => JSON.parse(line)))).toEqual(named(expected));
  });
}

/** They take `_` in a name for any character unless it is escaped. */
const JDBC = `
import java.sql.*;

public class Reader {
    public static void main(String[] args) throws Exception {
        for (int at = 0; at < args.length; at += 3) read(args[at], args[at + 1], args[at + 2]);
    }

    static void read(String url, String user, String password) throws Exception {
        int tables = 0, columns = 0, rows = 0;
        try (var connection = DriverManager.getConnection(url, user, password)) {
            var meta = connection.getMetaData();
            var found = meta.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"});
            while (found.next()) {
                tables++;
                var name = found.getString("TABLE_NAME");
                var described = meta.getColumns(null, "public", name.replace("_", meta.getSearchStringEscape() + "_"), "%");
                while (described.next()) columns++;
                try (var statement = connection.createStatement()) {
                    var read = statement.executeQuery("select * from \\"" + name + "\\"");
                    while (read.next()) {
                        rows++;
                        for (int i = 1; i <= read.getMetaData().getColumnCount(); i++) read.getObject(i);
                    }
                }
            }
        }
        System.out.println("{\\"tables\\":" + tables + ",\\"columns\\":" + columns + ",\\"rows\\":" + rows + "}");
    }
}
`;

const ODBC = `
import json, sys
import pyodbc

for url in sys.argv[1:]:
    db = pyodbc.connect(url)
    names = [table.table_name for table in db.cursor().tables(schema="public")]
    columns = sum(len(list(db.cursor().columns(table=name.replace("_", "\\\\_"), schema="public"))) for name in names)
    rows = sum(len(db.cursor().execute(f'select * from "{name}"').fetchall()) for name in names)
    print(json.dumps({"tables": len(names), "columns": columns, "rows": rows}))
`;

const SUPERSET = `
import json, sys
import sqlalchemy as sa

for url in sys.argv[1:]:
    engine = sa.create_engine(url)
    inspector = sa.inspect(engine)
    names = inspector.get_table_names() + inspector.get_view_names()
    columns = sum(len(inspector.get_columns(name)) for name in names)
    with engine.connect() as db:
        rows = sum(len(db.execute(sa.select(sa.Table(name, sa.MetaData(), autoload_with=engine))).fetchall()) for name in names)
    print(json.dumps({"tables": len(names), "columns": columns, "rows": rows}))
`;

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function run(words: string[]): Promise<string> {
  const child = Bun.spawn(words, { cwd: folder, stdout: "pipe", stderr: "pipe" });
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${words.join(" ")}: ${out}${errors}`);
  return out;
}

/** What fails, by sample base: the faults of these versions that the docs name. Other bases compile, and have every column. */
const FAULTS: Record<GeneratorName, Record<string, RegExp>> = {
  // Names that begin with a digit, or are words of TypeScript; `id` and `id_` are one property.
  "drizzle-kit pull": { hostile: /TS1134/, "names alike": /TS1134/, REAL: /TS1117/ },
  // A comment that contains the end of a comment.
  "kysely-codegen": { hostile: /TS1131/ },
  "pg-to-ts": { hostile: /TS1161/, "names alike": /TS2427/ },
  "sequelize-auto": { hostile: /TS2427/, "names alike": /TS2427/ },
  "typeorm-model-generator": { hostile: /TS1005/, "names alike": /TS1005/, REAL: /TS2300/ },
  zapatos: { hostile: /TS2819/, "names alike": /TS2819/ },
  // Names without Latin letters; `task2` and `task_2` are one type.
  kanel: { hostile: /unsalvageable identifier/, "names alike": /TS2300/ },
  // A query with letters other than those of ASCII: it writes nothing, and ends without an error.
  pgtyped: { hostile: /TS18003/, "names alike": /TS18003/ },
};

const page = readFileSync(join(repoRoot, "docs/types-in-code.md"), "utf8");

const withoutTools = () =>
  process.env.TOOLS
    ? node === undefined && "there is no Node"
    : "these programs have 600 MB of packages: bun run tools installs and runs them";

for (const name of Object.keys(generators) as GeneratorName[]) {
  test(name, { ...runs(toolOf(name)), timeout: TIMEOUT_MS }, async ({ task, skip }) => {
    const reason = withoutTools();
    skip(Boolean(reason), String(reason));
    const bases = Object.keys(FAULTS[name]).map((base) =>
      base === "REAL" ? "bases with a field ID" : `“${base}”`,
    );
    task.meta.except = bases.join(", ");
    for (const sample of samples) {
      const { text, faults } = await generate(name, sample.url, relationsOf(sample.tables));
      const [isReal, known] = [REAL.includes(sample.name), FAULTS[name]];
      const expected = known[isReal ? "REAL" : sample.name];
      if (expected) expect([sample.name, faults]).toEqual([sample.name, expect.stringMatching(expected)]);
      else {
        expect([sample.name, faults]).toEqual([sample.name, ""]);
        const missing = sample.tables.flatMap(({ columns }) =>
          columns.filter((column) => !text.includes(column.name)),
        );
        expect([sample.name, missing.map((column) => column.name)]).toEqual([sample.name, []]);
      }
    }
  });
}

function toolOf(name: GeneratorName): Tool {
  const [word = ""] = name.split(" ");
  const tool = pinned(TOOLS_FOLDER, word, name);
  return tool.version ? tool : pinned(TOOLS_FOLDER, `@${word}/cli`, name);
}

const NAMELESS_MODEL = /^model {2}\{\n(?:.*\n)*?\}\n/m;

test("prisma db pull describes every table, and Prisma's client reads their rows", {
  ...runs(pinned(PRISMA_FOLDER, "prisma", "prisma db pull")),
  timeout: TIMEOUT_MS,
}, async ({ task, skip }) => {
  skip(!process.env.PRISMA, "Prisma has 300 MB of packages: bun run tools installs and runs it");
  task.meta.except = "names without Latin letters, views, and rows of which a list has an empty element";
  for (const sample of samples) {
    const { sql, tables, name } = sample;
    const pulled = await pullWithPrisma(sample.url);
    // A name without Latin letters leaves a model without a name, with which Prisma refuses the file.
    expect([name, NAMELESS_MODEL.test(pulled)]).toEqual([name, name === "hostile"]);
    const schema = pulled.replace(NAMELESS_MODEL, "");
    const found = await countWithPrisma(schema, sample.url);
    const own = tables.filter((table) => !/^[^a-z]*$/.test(table.name));
    const counts = own.map(async (table) => {
      const [row] = await sql`select count(*)::int as n from ${sql(`public.${table.name}`)}`;
      return [table.name, row!.n];
    });
    const expected = Object.fromEntries(await Promise.all(counts));
    const read = Object.fromEntries(Object.entries(found).filter(([, n]) => typeof n === "number"));
    expect([name, Object.keys(found).toSorted()]).toEqual([name, Object.keys(expected).toSorted()]);
    expect([name, expected]).toEqual([name, expect.objectContaining(read)]);
    // Of the sample bases, one lookup has an empty element.
    const failed = Object.entries(found).filter(([, n]) => typeof n !== "number");
    expect([name, failed]).toEqual([name, name === "hostile" ? [["2024_types", expect.any(String)]] : []]);
  }
});

test("TypeORM reads every table and view, except for one with a virtual column", {
  ...runs(pinned(TOOLS_FOLDER, "typeorm", "TypeORM, reading tables")),
  timeout: TIMEOUT_MS,
}, async ({ task, skip }) => {
  const reason = withoutTools();
  skip(Boolean(reason), String(reason));
  task.meta.except = "tables with a virtual column";
  for (const { url, sql, tables, name } of samples) {
    const names = relationsOf(tables);
    const found = await runInTools("typeorm.mjs", url, ...names);
    const columns = await sql`
      select relname, count(*)::int as n, bool_or(attgenerated = 'v') as has_virtual
      from pg_attribute join pg_class on pg_class.oid = attrelid
      where relnamespace = 'public'::regnamespace and relname = any (${names}) and attnum > 0 and not attisdropped
      group by relname`;
    const expected = columns.map(({ relname, n, has_virtual }) => [
      relname,
      has_virtual ? 'relation "typeorm_metadata" does not exist' : n,
    ]);
    expect([name, JSON.parse(found)]).toEqual([name, Object.fromEntries(expected)]);
  }
});

test("DuckDB reads every row, empty text and list from CSV", {
  ...runs(pinned(TOOLS_FOLDER, "@duckdb/node-api", "DuckDB, by CSV")),
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  const reason = withoutTools();
  skip(Boolean(reason), String(reason));
  skip(!Bun.which("psql"), "there is no psql");
  for (const { url, sql, tables, name } of samples) {
    const [{ name: first, columns: texts }] = tables as [Sample["tables"][number]];
    const text = texts.find(({ type }) => type === "text")!.name;
    await sql`update ${sql(first)} set ${sql(text)} = '' where id = (select max(id) from ${sql(first)})`;
    const files: { path: string; lists: string[] }[] = [];
    const expected: unknown[] = [];
    for (const { name: table } of tables) {
      const columns = await sql`
        select attname as name, format_type(atttypid, null) like '%[]' as "isList" from pg_attribute
        where attrelid = ${`public.${quoteIdent(table)}`}::regclass and attnum > 0 and not attisdropped order by attnum`;
      const path = join(folder, `${files.length}.csv`);
      const from = `from public.${quoteIdent(table)}`;
      const cells = columns.map((column) => [quoteIdent(column.name), column.isList] as const);
      const selected = cells.map(([cell, isList]) => (isList ? `to_json(${cell}) as ${cell}` : cell));
      writeFileSync(
        path,
        await run(["psql", url, "-qc", `copy (select ${selected} ${from}) to stdout (format csv, header)`]),
      );
      const lists = cells.filter(([, isList]) => isList).map(([cell]) => `to_json(${cell}::text[])`);
      const [row] = await sql.unsafe(
        `select count(*)::int as rows, coalesce(sum(num_nulls(${cells.map(([cell]) => cell)})), 0)::int as nulls,
           coalesce(json_agg(json_build_array(${lists}) order by id), '[]') as values ${from}`,
      );
      const names = columns.map((column) => column.name);
      expected.push({
        rows: row!.rows,
        columns: names,
        nulls: row!.nulls,
        values: lists.length > 0 ? row!.values : [],
      });
      files.push({ path, lists: columns.filter((column) => column.isList).map((column) => column.name) });
    }
    expect([name, JSON.parse(await runInTools("duckdb.mjs", JSON.stringify(files)))]).toEqual([
      name,
      expected,
    ]);
  }
});

test("the docs name the generators and programs with the versions that are run", () => {
  for (const name of Object.keys(generators) as GeneratorName[])
    expect(page).toContain(`| ${name} ${toolOf(name).version} |`);
  expect(page).toContain(`| prisma db pull ${pinned(PRISMA_FOLDER, "prisma").version} |`);
  expect(page).toContain(`| TypeORM ${pinned(TOOLS_FOLDER, "typeorm").version} |`);
  const guide = readFileSync(join(repoRoot, "docs/sql.md"), "utf8");
  expect(guide).toContain(`| DuckDB ${pinned(TOOLS_FOLDER, "@duckdb/node-api").version.split("-")[0]} |`);
});
