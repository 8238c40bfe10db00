/**
 * Programs of the field that read a database's description, on sample bases: the drivers of Power BI, Excel, Metabase and
 * Superset find every table, column and row; generators of code do, or fail as `docs/types-in-code.md` says.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { quoteIdent } from "../../../core/replica";
import { node } from "../../support/node";
import { createSamples, REAL, relationsOf, type Sample } from "../../support/sample-bases";
import { scratchFolder } from "../../support/scratch";
import { repoRoot } from "../../support/source-files";
import { type GeneratorName, generate, generators } from "../../support/tools/generators";

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

const readers: Record<string, { missing(): string | false; words(url: URL): string[] }> = {
  "JDBC, as Metabase, DBeaver and Tableau read": {
    missing: () =>
      !(Bun.which("javac") && existsSync(JDBC_DRIVER)) && "libpostgresql-jdbc-java or a JDK is missing",
    words: ({ host, pathname, username, password }) => [
      ...["java", "-cp", JDBC_DRIVER, write("Reader.java", JDBC)],
      ...[`jdbc:postgresql://${host}${pathname}`, username, decodeURIComponent(password)],
    ],
  },
  "ODBC, as Power BI and Excel read": {
    missing: () => !imports("pyodbc") && "python3-pyodbc or odbc-postgresql is not installed",
    words: ({ hostname, port, pathname, username, password }) => [
      ...[PYTHON, write("odbc_reader.py", ODBC)],
      `DRIVER={PostgreSQL Unicode};SERVER=${hostname};PORT=${port};DATABASE=${pathname.slice(1)};UID=${username};PWD={${decodeURIComponent(password)}}`,
    ],
  },
  "SQLAlchemy's inspector, as Superset reads": {
    missing: () => !imports("sqlalchemy, psycopg2") && "sqlalchemy or psycopg2 is not installed",
    words: (url) => [
      ...[PYTHON, write("superset_reader.py", SUPERSET)],
      url.href.replace("postgres://", "postgresql+psycopg2://"),
    ],
  },
};

const imports = (names: string) => Bun.spawnSync([PYTHON, "-c", `import ${names}`]).exitCode === 0;

test.for(Object.keys(readers))(
  "%s: every table, view, column and row",
  {
    timeout: TIMEOUT_MS,
  },
  async (name, { skip }) => {
    const { missing, words } = readers[name]!;
    const reason = missing();
    skip(Boolean(reason), String(reason));
    for (const sample of samples) {
      const found = JSON.parse(await run(words(new URL(sample.url))));
      expect([sample.name, found]).toEqual([sample.name, await countsOf(sample)]);
    }
  },
);

/** They take `_` in a name for any character unless it is escaped. */
const JDBC = `
import java.sql.*;

public class Reader {
    public static void main(String[] args) throws Exception {
        int tables = 0, columns = 0, rows = 0;
        try (var connection = DriverManager.getConnection(args[0], args[1], args[2])) {
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

db = pyodbc.connect(sys.argv[1])
names = [table.table_name for table in db.cursor().tables(schema="public")]
columns = sum(len(list(db.cursor().columns(table=name.replace("_", "\\\\_"), schema="public"))) for name in names)
rows = sum(len(db.cursor().execute(f'select * from "{name}"').fetchall()) for name in names)
print(json.dumps({"tables": len(names), "columns": columns, "rows": rows}))
`;

const SUPERSET = `
import json, sys
import sqlalchemy as sa

engine = sa.create_engine(sys.argv[1])
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

test.for(Object.keys(generators) as GeneratorName[])(
  "%s",
  { timeout: TIMEOUT_MS },
  async (name, { skip }) => {
    skip(!process.env.TOOLS, "the generators have 400 MB of packages: bun run tools installs and runs them");
    skip(node === undefined, "there is no Node");
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
  },
);

test("the docs name the generators with the versions that are run", () => {
  const { dependencies } = JSON.parse(
    readFileSync(join(repoRoot, "test/support/tools/package.json"), "utf8"),
  );
  for (const name of Object.keys(generators)) {
    const [word = ""] = name.split(" ");
    const version = dependencies[word] ?? dependencies[`@${word}/cli`];
    expect(page).toContain(`| ${name} ${version} |`);
  }
});
