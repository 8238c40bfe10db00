/** The published snippets, run unchanged. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../../apps/console/start";
import { isSandbox, tryWrite } from "../../../apps/console/try-write";
import { startProxy } from "../../../apps/proxy/start";
import { getBase, listBases, readRecordRow, replicaShape } from "../../../core/control/bases";
import { databaseCredentials, getDatabase } from "../../../core/control/placement";
import { sampleQueries } from "../../../core/exports";
import { closeContext, createContext } from "../../../core/process";
import { proxySnippets, type Snippet } from "../../../views/base/snippets";
import {
  airtableJsWrite,
  curlWrite,
  pythonWrite,
  type WriteExample,
  writeExampleOf,
} from "../../../views/base/write-snippets";
import { type Fleet, startFleet } from "../../support/fleet";
import { node } from "../../support/node";
import { until } from "../../support/poll";
import { repoRoot } from "../../support/source-files";

const TABLE = "Product Inventory / 'new'";

let releases: AsyncDisposableStack;
let fleet: Fleet;
let snippets: Map<Snippet["id"], string>;
let folder: string;
/** Does not know of a proxy. */
let ownProgram: string;
let example: WriteExample;
let databaseUrl: string;
/** A base with links. */
let linkedId: string;

beforeAll(async () => {
  releases = new AsyncDisposableStack();
  fleet = releases.use(await startFleet());
  const baseId = fleet.sandbox.control.createBase({
    tables: [
      {
        name: TABLE,
        fields: [{ name: "Name", type: "singleLineText" }],
        records: [{ fields: { Name: "A bolt" } }, { fields: { Name: "A nut" } }],
      },
    ],
  });
  const base = await fleet.connect(baseId);
  linkedId = (await fleet.connect(fleet.sandbox.control.generate({ tables: 4, records: 80, seed: 3 }))).id;
  const ctx = createContext(fleet.ctx.config, "proxy");
  releases.defer(() => closeContext(ctx));
  const proxy = await startProxy(ctx, { port: 0 });
  releases.defer(() => proxy.stop());
  const console: RunningConsole = await startConsole(fleet.ctx, { port: 0 });
  releases.defer(() => console.stop());
  const all = proxySnippets({
    proxyUrl: `http://localhost:${proxy.port}`,
    consoleUrl: `http://localhost:${console.port}`,
    baseId,
    table: TABLE,
  });
  await fleet.synced(base.id);
  const at = {
    endpoint: `http://localhost:${proxy.port}/api.airtable.com`,
    baseId,
    schema: base.database.schema,
  };
  example = writeExampleOf(at, (await replicaShape(fleet.ctx, base)).tables)!;
  databaseUrl = (await databaseCredentials(fleet.ctx, await getDatabase(fleet.ctx.db, base.database.id))).url;
  ownProgram = `
    import Airtable from "airtable";
    const table = new Airtable({ apiKey: process.env.AIRTABLE_API_KEY }).base("${baseId}")(${JSON.stringify(TABLE)});
    console.log((await table.select().all()).map((record) => record.fields));`;
  snippets = new Map(all.map(({ id, code }) => [id, code]));
  // Inside the repository, so that packages are found.
  folder = mkdtempSync(join(repoRoot, ".snippets-"));
  releases.defer(() => rmSync(folder, { recursive: true }));
});

afterAll(() => releases.disposeAsync());

async function run(words: string[]): Promise<string> {
  const child = Bun.spawn(words, {
    env: { ...process.env, AIRTABLE_API_KEY: fleet.sandbox.key, DATABASE_URL: databaseUrl },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(errors);
  return output;
}

function script(name: string, id: Snippet["id"]): string {
  const file = join(folder, name);
  writeFileSync(file, snippets.get(id)!);
  return file;
}

test("the curl snippet lists records", async () => {
  const output = await run(["sh", "-c", `${snippets.get("curl")} -s`]);
  expect(
    JSON.parse(output).records.map((record: { fields: { Name: string } }) => record.fields.Name),
  ).toEqual(["A bolt", "A nut"]);
});

test("the airtable.js snippet lists records", async () => {
  expect(await run([process.execPath, script("airtable.mjs", "airtable.js")])).toMatch(/A bolt[\s\S]*A nut/);
});

test("the fetch snippet lists records", async () => {
  // The output abbreviates the cells.
  expect(await run([process.execPath, script("fetch.mjs", "fetch")])).toMatch(
    /records: \[[\s\S]*rec\w+[\s\S]*rec\w+/,
  );
});

test.for(["env", "node"] as const)(
  "the %s snippet sends a program's own requests through the proxy",
  async (id, { skip }) => {
    skip(node === undefined, "there is no Node on this machine");
    writeFileSync(join(folder, "own.mjs"), ownProgram);
    const output = await run(["sh", "-c", `cd ${folder}\n${snippets.get(id)}\n${node} own.mjs`]);
    expect(output).toMatch(/A bolt[\s\S]*A nut/);
  },
);

test("the pyairtable snippet lists records", async ({ skip }) => {
  const hasPyairtable = Bun.spawnSync(["python3", "-c", "import pyairtable"]).exitCode === 0;
  skip(!hasPyairtable, "pyairtable is not installed on this machine");
  expect(await run(["python3", script("list.py", "pyairtable")])).toMatch(/A bolt[\s\S]*A nut/);
});

test("the pyairtable snippet is Python", async ({ skip }) => {
  skip(!Bun.which("python3"), "there is no python3 on this machine");
  const source = script("check.py", "pyairtable");
  await run(["python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", source]);
});

test("the curl and airtable.js programs create a record and change it, and their SELECT shows the change", async () => {
  if (Bun.which("psql")) expect(await run(["sh", "-c", curlWrite(example)])).toContain(example.updated);
  writeFileSync(join(folder, "write.mjs"), airtableJsWrite(example));
  expect(await run([process.execPath, join(folder, "write.mjs")])).toContain(example.updated);
});

test("the first queries run, and are a list, a join over a link of the base, and groups", async () => {
  await until(async () => (await getBase(fleet.ctx.db, linkedId)).sync !== null, {
    what: "the first sync has completed",
    timeoutMs: 60_000,
  });
  const linked = await getBase(fleet.ctx.db, linkedId);
  const counts = new Map(linked.tables.map(({ name, records }) => [name, records]));
  const { tables } = await replicaShape(fleet.ctx, linked);
  const queries = sampleQueries(linked.database.schema, tables, counts).slice(0, 3);
  const kindOf = (sql: string) =>
    sql.includes("join ") ? "join" : sql.includes("count(*)") ? "groups" : "list";
  expect(queries.map(({ sql }) => kindOf(sql))).toEqual(["list", "join", "groups"]);
  const reader = await fleet.reader(linked);
  for (const { sql } of queries) expect((await reader.unsafe(sql)).length).toBeGreaterThan(0);
});

test("the Python program for writes is Python", async ({ skip }) => {
  skip(!Bun.which("python3"), "there is no python3 on this machine");
  const source = join(folder, "write.py");
  writeFileSync(source, pythonWrite(example));
  await run(["python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", source]);
});

test("the console tries a write in a sandbox, and takes Airtable itself for none", async () => {
  const { config } = fleet.ctx;
  expect(await isSandbox(config)).toBe(true);
  expect(await isSandbox({ upstreams: { "api.airtable.com": "https://api.airtable.com" } })).toBe(false);
  const base = (await listBases(fleet.ctx.db)).find(({ id }) => id !== linkedId);
  const recordId = await tryWrite(fleet.ctx, base!, example);
  expect(await readRecordRow(fleet.ctx, base!, example.table, recordId)).toContain(example.updated);
});
