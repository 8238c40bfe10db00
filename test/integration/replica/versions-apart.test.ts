/**
 * What leaves a replica's server for another version of Postgres: a dump, and logical replication with columns and a
 * filter. The names have accents, leading digits and 63 bytes.
 */
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sqlDefinitions } from "../../../core/exports";
import { quoteIdent } from "../../../core/replica";
import { until } from "../../support/poll";
import { createSamples, type Sample } from "../../support/sample-bases";
import { scratchFolder } from "../../support/scratch";
import { PASSWORD, type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { POSTGRES_VERSIONS, type PostgresVersion } from "../../support/servers/postgres-versions";
import { runInTools, TOOLS_FOLDER } from "../../support/tools/generators";
import { ofDebian, pinned, runs } from "../../support/tools/table";

const TIMEOUT_MS = 180_000;
/** With `TOOLS`, all versions. */
const OTHERS: PostgresVersion[] = process.env.TOOLS ? ["16", "17", "18"] : ["18"];
const LOGICAL = { wal_level: "logical", max_replication_slots: "10", max_wal_senders: "10" };

let releases: AsyncDisposableStack;
let oldest: PostgresServer;
const others = new Map<PostgresVersion, PostgresServer>();

beforeAll(async () => {
  releases = new AsyncDisposableStack();
  const start = async (version: PostgresVersion) =>
    releases.use(await postgresServer({ version, settings: LOGICAL }));
  oldest = await start("15");
  for (const version of OTHERS) others.set(version, await start(version));
}, TIMEOUT_MS);
afterAll(() => releases.disposeAsync());

const hasClient = () =>
  Bun.which("pg_dump") !== null && Bun.spawnSync(["pg_dump", "--version"]).stdout.toString().includes(" 15.");

function run(input: string, ...words: string[]): string {
  const env = { ...process.env, PGPASSWORD: PASSWORD };
  const { exitCode, stdout, stderr } = Bun.spawnSync(words, { env, stdin: new TextEncoder().encode(input) });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
  return stdout.toString();
}

/** All names, types, comments and rows. */
async function contentOf(sql: postgres.Sql) {
  const columns = await sql`
    select relname as relation, attname, format_type(atttypid, atttypmod) as type, col_description(attrelid, attnum)
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = 'public'::regnamespace and attnum > 0 and relkind in ('r', 'v') order by relname collate "C", attnum`;
  const tables = [...new Set(columns.map(({ relation }) => relation as string))];
  const rows: unknown[] = [];
  for (const table of tables) {
    const [row] = await sql.unsafe(
      `select json_agg(t order by t::text collate "C") as rows from public."${table.replaceAll('"', '""')}" as t`,
    );
    rows.push([table, row!.rows]);
  }
  return { columns: [...columns], rows };
}

const CLIENT_15 = ofDebian("postgresql-client-15", "pg_dump, psql and pg_restore, from 15 to later servers");
const { version } = pinned(TOOLS_FOLDER, "@electric-sql/pglite-tools");
const DUMP_18 = {
  name: "pg_dump, from and to servers 15 to 18",
  version: `18.3, in pglite-tools ${version}`,
};

test("a dump of Postgres 15 restores on later versions, with names, types, comments and views", {
  ...runs(CLIENT_15),
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!hasClient(), "there is no pg_dump 15, and newer ones cannot be installed");
  await using own = new AsyncDisposableStack();
  const [sample] = (await createSamples(own, ["names alike"], oldest.url)) as [Sample];
  const from = new URL(oldest.url);
  from.pathname = new URL(sample.url).pathname;
  const content = await contentOf(sample.sql);
  const dump = run("", "pg_dump", from.href, "--no-owner", "--no-acl");
  const archive = join(scratchFolder("archive"), "base.dump");
  run("", "pg_dump", from.href, "--format=custom", `--file=${archive}`);
  for (const [version, server] of [["15", oldest] as const, ...others]) {
    const restored = await emptyDatabase(server, own);
    run(dump, "psql", restored.url, "--quiet", "--set=ON_ERROR_STOP=1");
    expect([version, await contentOf(restored.sql)]).toEqual([version, content]);
    const again = await emptyDatabase(server, own);
    run("", "pg_restore", `--dbname=${again.url}`, "--no-owner", "--no-acl", "--exit-on-error", archive);
    expect([version, await contentOf(again.sql)]).toEqual([version, content]);
  }
});

test.for(POSTGRES_VERSIONS)(
  "pg_dump 18 dumps Postgres %s for 15 to 18; with an old name on 18, only for 18",
  { ...runs(DUMP_18), timeout: TIMEOUT_MS },
  async (version, { skip }) => {
    skip(
      !process.env.TOOLS,
      "this pg_dump has 600 MB of packages next to it: bun run tools installs and runs it",
    );
    skip(!hasClient(), "there is no psql");
    await using own = new AsyncDisposableStack();
    const servers = new Map([["15", oldest], ...others]) as Map<PostgresVersion, PostgresServer>;
    const from = servers.get(version)!;
    const [sample] = (await createSamples(own, ["names alike"], from.url)) as [Sample];
    const url = new URL(from.url);
    url.pathname = new URL(sample.url).pathname;
    const restore = async (to: PostgresVersion) => {
      const dump = await runInTools("pg-dump.mjs", url.href, "--no-owner", "--no-acl");
      // Servers before 17 do not know this setting.
      const text = to < "17" ? dump.replace(/^SET transaction_timeout.*$/m, "") : dump;
      const restored = await emptyDatabase(servers.get(to)!, own);
      run(text, "psql", restored.url, "--quiet", "--set=ON_ERROR_STOP=1");
      return contentOf(restored.sql);
    };
    for (const to of POSTGRES_VERSIONS)
      expect([to, await restore(to)]).toEqual([to, await contentOf(sample.sql)]);
    if (version !== "18") return;
    await addOldName(sample);
    expect(await restore("18")).toEqual(await contentOf(sample.sql));
    await expect(restore("17")).rejects.toThrow(/syntax error at or near "\)"/);
  },
);

/** The column that a rename leaves on Postgres 18. */
async function addOldName({ sql, tables }: Sample): Promise<void> {
  const [{ name, columns }] = tables as [Sample["tables"][number]];
  await sql.unsafe(
    `alter table ${quoteIdent(name)} add column old_name text generated always as (${quoteIdent(columns[0]!.name)}) virtual`,
  );
}

async function emptyDatabase(server: PostgresServer, own: AsyncDisposableStack) {
  const name = `restored_${crypto.randomUUID().slice(0, 8)}`;
  await server.run([`create database ${name}`]);
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const sql = postgres(url.href, { max: 1, onnotice: () => {} });
  own.defer(() => sql.end({ timeout: 1 }));
  return { url: url.href, sql };
}

test.for(OTHERS.flatMap((version) => [`15 to ${version}`, `${version} to 15`]))(
  "a subscriber has the listed columns of the rows that the filter lets through: %s",
  {
    ...runs({ name: "logical replication, with columns and a filter", version: "15 to 18" }),
    timeout: TIMEOUT_MS,
  },
  async (direction) => {
    const [from, to] = direction
      .split(" to ")
      .map((version) => (version === "15" ? oldest : others.get(version as PostgresVersion)!)) as [
      PostgresServer,
      PostgresServer,
    ];
    await using own = new AsyncDisposableStack();
    const [sample] = (await createSamples(own, ["names alike"], from.url)) as [Sample];
    const database = new URL(sample.url).pathname.slice(1);
    const { sql, tables } = sample;
    const published = tables.filter(({ name }) => /^(2024|a_name|größe|task$)/.test(name));
    expect(published).toHaveLength(5);
    if (from.version === "18") await addOldName({ ...sample, tables: published });
    const lists = published.map(({ name, columns }) => {
      const names = ["id", ...columns.slice(0, 3).map((column) => column.name), columns.at(-1)!.name];
      return `${quoteIdent(name)} (${names.map(quoteIdent).join(", ")}) where (id <> 'recFull0000000000')`;
    });
    const name = `p${direction.replaceAll(" ", "_")}`;
    await sql.unsafe(`create publication ${name} for table ${lists.join(", ")}`);
    await to.run([`create database ${name}`]);
    const url = new URL(to.url);
    url.pathname = `/${name}`;
    const subscriber = postgres(url.href, { max: 1, onnotice: () => {} });
    own.defer(() => subscriber.end({ timeout: 1 }));
    await subscriber.unsafe(sqlDefinitions("public", published));
    for (const table of published)
      await subscriber.unsafe(
        `alter table ${quoteIdent(table.name)} alter column created_time drop not null`,
      );
    const source = `host=${from.host} port=${from.port} dbname=${database} user=postgres password=${PASSWORD}`;
    await subscriber.unsafe(`create subscription ${name} connection '${source}' publication ${name}`);
    own.defer(async () => void (await subscriber.unsafe(`drop subscription ${name}`)));

    const [first, other] = published as [(typeof published)[number], (typeof published)[number]];
    const column = first.columns[0]!.name;
    await sql`insert into ${sql(first.name)} (id, created_time, ${sql(column)}) values ('recNew', now(), 'new')`;
    await sql`update ${sql(first.name)} set ${sql(column)} = 'changed' where id = 'recNew'`;
    await sql`delete from ${sql(other.name)} where id like 'recEmpty%'`;
    const seen = async () => {
      const rows = published.map(async (table) => [
        table.name,
        (await subscriber`select id from ${subscriber(table.name)} order by id`).map(({ id }) => id),
      ]);
      return Object.fromEntries(await Promise.all(rows));
    };
    const wanted = published.map(async (table) => [
      table.name,
      (await sql`select id from ${sql(table.name)} where id <> 'recFull0000000000' order by id`).map(
        ({ id }) => id,
      ),
    ]);
    const expected = Object.fromEntries(await Promise.all(wanted));
    await until(async () => Bun.deepEquals(await seen(), expected), {
      what: "the subscriber has the rows",
      timeoutMs: 60_000,
    });
    const [row] = await subscriber`select * from ${subscriber(first.name)} where id = 'recNew'`;
    expect([row![column], row!.created_time]).toEqual(["changed", null]);
  },
);
