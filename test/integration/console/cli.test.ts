/**
 * The customers' command line against a console: its package, installed and run by Node, where a process matters, and in
 * this process elsewhere, because each start of Node takes a third of a second.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { packCli } from "../../../apps/cli/pack";
import { runCli } from "../../../apps/cli/program";
import { consoleApp } from "../../../apps/console/app";
import { createAgentToken } from "../../../core/control/accounts";
import { deleteBase, getBase, recordRun, updateSettings } from "../../../core/control/bases";
import { createChangeSet, getChangeSet } from "../../../core/control/change-sets";
import { newId } from "../../../core/ids";
import { PROTOCOL_REVISIONS } from "../../support/agent-client";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { node } from "../../support/node";
import { until } from "../../support/poll";
import { repoRoot } from "../../support/source-files";

const BASES = 50;
/** For a command on a busy machine; what it may take is measured as the requests that it sends. */
const TIMEOUT_MS = 60_000;

let control: TestControl;
let server: ReturnType<typeof Bun.serve>;
let folder: string;
let program: string;
let token: string;
let accountId: string;
/** The calls that the service received. */
const calls: string[] = [];
/** Answers in place of the service's, by the call. */
const answers = new Map<string, unknown>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "basetide-cli-"));
  const archive = await packCli(join(folder, "packed"));
  const empty = join(folder, "installed");
  mkdirSync(empty);
  // Nothing may be fetched: the cache is empty, too.
  const words = [
    "install",
    "--offline",
    "--no-audit",
    "--no-fund",
    "--cache",
    join(folder, "cache"),
    archive,
  ];
  const installed = Bun.spawnSync(node ? ["npm", ...words] : [process.execPath, "add", archive], {
    cwd: empty,
  });
  expect(installed.exitCode, installed.stderr.toString()).toBe(0);
  program = join(empty, "node_modules/basetide/basetide.mjs");
  control = await testControl();
  // The tests make more calls in a minute than the limit.
  const config = { ...control.ctx.config, apiRequestsPerMinute: 100_000 };
  const app = consoleApp({ ...control.ctx, config });
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      calls.push(`${request.method} ${pathname}`);
      const answer = answers.get(pathname + search);
      return answer === undefined ? app.handle(request) : Response.json(answer);
    },
  });
  const account = await control.addAccount("owner@example.org");
  ({ token, id: accountId } = account);
  await addBases(BASES);
}, TIMEOUT_MS);
afterAll(async () => {
  await server?.stop(true);
  // They have no database that could be dropped.
  if (control) await control.ctx.db`delete from bases where source_base_id like 'appPlain%'`;
  await control?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function addBases(count: number): Promise<void> {
  const { db } = control.ctx;
  const databaseId = newId("database");
  await db`
    insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
    select ${databaseId}, ${accountId}, id, ${databaseId}, ${databaseId}, 'x' from clusters limit 1`;
  const rows = Array.from({ length: count }, (_, index) => ({
    ...{ id: newId("base"), account_id: accountId, platform: "airtable", source_base_id: `appPlain${index}` },
    ...{ name: `Base ${index}`, encrypted_api_key: "x", database_id: databaseId, schema_name: `s${index}` },
  }));
  await db`insert into bases ${db(rows)}`;
}

interface Ran {
  out: string;
  errors: string;
  code: number;
}

const config = () => join(folder, "config/basetide/config.json");
const contract = () => join(folder, "basetide.yaml");

/** Runs a command in this process. */
async function cli(words: string[], env: Record<string, string> = {}): Promise<Ran> {
  const [out, errors]: string[][] = [[], []];
  const printed = (lines: string[], end: string) => (text: unknown) => lines.push(`${text}${end}`) > 0;
  const spies = [
    vi.spyOn(console, "log").mockImplementation(printed(out!, "\n")),
    vi.spyOn(console, "error").mockImplementation(printed(errors!, "\n")),
    vi.spyOn(process.stdout, "write").mockImplementation(printed(out!, "")),
    vi.spyOn(process.stderr, "write").mockImplementation(printed(errors!, "")),
  ];
  vi.stubEnv("XDG_CONFIG_HOME", join(folder, "config"));
  vi.stubEnv("GITHUB_ACTIONS", undefined);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const { exitCode } = process;
  process.exitCode = 0;
  try {
    await runCli(words);
    return { out: out!.join(""), errors: errors!.join(""), code: Number(process.exitCode) };
  } finally {
    process.exitCode = exitCode;
    vi.unstubAllEnvs();
    for (const spy of spies) spy.mockRestore();
  }
}

/** The same with the file. */
function onFile(words: string[], env: Record<string, string> = {}): Promise<Ran> {
  return cli([...words, "--file", contract()], env);
}

/**
 * Runs a command of the installed package by Node.
 *
 * @param options of Node itself
 */
async function run(
  words: string[],
  env: Record<string, string> = {},
  input = "",
  options: string[] = [],
): Promise<Ran> {
  const child = Bun.spawn([node ?? process.execPath, ...options, program, ...words], {
    cwd: folder,
    env: { PATH: process.env.PATH!, HOME: folder, XDG_CONFIG_HOME: join(folder, "config"), ...env },
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, errors, code };
}

const address = () => `http://127.0.0.1:${server.port}`;

test("the package installs alone: one program under 1 MB, without dependencies, with its version, README and licenses", {
  timeout: TIMEOUT_MS,
}, async () => {
  const modules = join(folder, "installed/node_modules");
  expect(readdirSync(modules).filter((name) => !name.startsWith("."))).toEqual(["basetide"]);
  const files = readdirSync(join(modules, "basetide"));
  expect(files.sort()).toEqual(
    ["LICENSE", "README.md", "THIRD-PARTY-LICENSES", "basetide.mjs", "package.json"].sort(),
  );
  const bytes = files.map((file) => statSync(join(modules, "basetide", file)).size);
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1_000_000);
  const manifest = JSON.parse(readFileSync(join(modules, "basetide/package.json"), "utf8"));
  const { version } = JSON.parse(readFileSync(join(repoRoot, "package.json"), "utf8"));
  expect(manifest).toMatchObject({ name: "basetide", version, engines: { node: ">=20" } });
  for (const kind of ["dependencies", "optionalDependencies", "peerDependencies", "scripts"])
    expect(manifest, kind).not.toHaveProperty(kind);

  // As people start it, by its name.
  const bin = Bun.spawnSync([join(modules, ".bin/basetide"), "--version"], { cwd: folder });
  expect([bin.exitCode, bin.stdout.toString()]).toEqual([0, `${version}\n`]);
  const help = await run(["--help"]);
  expect([help.code, help.errors]).toEqual([0, ""]);
  expect(help.out).toContain("bases");
});

test("the package has the same bytes wherever it is made", async () => {
  const made = (name: string, cwd: string) => {
    const target = join(folder, name);
    const script = `await (await import(${JSON.stringify(join(repoRoot, "apps/cli/pack.ts"))})).packCli(${JSON.stringify(target)})`;
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, "-e", script], { cwd });
    expect(exitCode, stderr.toString()).toBe(0);
    return readFileSync(join(target, readdirSync(target).find((file) => file.endsWith(".tgz"))!));
  };
  expect(made("a", repoRoot).equals(made("b", tmpdir()))).toBe(true);
});

test("an older Node is told which one to install", async ({ skip }) => {
  skip(!node, "this machine has no Node");
  const older = 'Object.defineProperty(process.versions, "node", { value: "18.20.8" })';
  const { code, out, errors } = await run(["--help"], {}, "", ["--import", `data:text/javascript,${older}`]);
  expect([code, out, errors]).toEqual([
    1,
    "",
    "error (node_outdated): This is Node 18.20.8. Install Node 20 or later.\n",
  ]);
});

test("a login is checked and stored for its owner only; without one, a command says what to do", {
  timeout: TIMEOUT_MS,
}, async () => {
  const none = await run(["bases", "list", "--json"]);
  expect([none.code, JSON.parse(none.errors).error.code]).toEqual([1, "not_logged_in"]);
  const wrong = await run(["login", "--url", address()], {}, "bt_wrong");
  expect([wrong.code, wrong.errors]).toEqual([
    1,
    expect.stringMatching(/^error \(unauthorized\): .*basetide login/),
  ]);
  expect(existsSync(config())).toBe(false);
  const remote = await run(["login", "--url", "http://console.example.com"], {}, token);
  expect([remote.code, remote.errors]).toEqual([1, expect.stringContaining("https://")]);

  const right = await run(["login", "--url", `${address()}/`], {}, `${token}\n`);
  expect([right.code, right.errors]).toEqual([0, ""]);
  expect(statSync(config()).mode & 0o777).toBe(0o600);
  expect(right.out).not.toContain(token);
  const unreachable = await run(["bases", "list"], {
    BASETIDE_URL: "http://127.0.0.1:1",
    BASETIDE_TOKEN: token,
  });
  expect([unreachable.code, unreachable.errors]).toEqual([
    1,
    expect.stringMatching(/^error \(unreachable\)/),
  ]);
});

test("a stored token goes only to the console that it was stored for", { timeout: TIMEOUT_MS }, async () => {
  const received: string[] = [];
  const sink = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch(request) {
      received.push(request.headers.get("authorization") ?? "none");
      return Response.json([]);
    },
  });
  try {
    const BASETIDE_URL = `http://127.0.0.1:${sink.port}`;
    const refused = await run(["bases", "list"], { BASETIDE_URL });
    expect([refused.code, refused.errors]).toEqual([1, expect.stringMatching(/not_logged_in.*BASETIDE_URL/)]);
    expect(received).toEqual([]);
    expect((await run(["bases", "list"], { BASETIDE_URL, BASETIDE_TOKEN: "bt_other" })).code).toBe(0);
    expect(received).toEqual(["Bearer bt_other"]);
    expect((await run(["bases", "list"], { BASETIDE_URL: `${address()}/` })).code).toBe(0);
    // In clear text only to this machine, not to a name that begins like its address.
    const abroad = { BASETIDE_URL: "http://127.0.0.1.example.org", BASETIDE_TOKEN: "bt_other" };
    expect((await run(["bases", "list"], abroad)).errors).toMatch(/is not an address to send a token to/);
  } finally {
    await sink.stop(true);
  }
});

test("bases are listed, shown by name, paused and resumed; a misspelled name lists those that exist", {
  timeout: TIMEOUT_MS,
}, async () => {
  const list = JSON.parse((await run(["bases", "list", "--json"])).out);
  expect(list).toHaveLength(BASES);
  const shown = await cli(["bases", "show", "Base 7"]);
  expect(shown.out).toContain("airtable_id: appPlain7");
  const paused = await cli(["bases", "pause", "appPlain7", "--json"]);
  expect(JSON.parse(paused.out)).toMatchObject({ name: "Base 7", state: "paused" });
  expect((await cli(["bases", "sync", "Base 7"])).errors).toContain("error (conflict)");
  expect((await cli(["bases", "resume", "Base 7"])).code).toBe(0);
  const missing = await cli(["bases", "show", "Bose"]);
  expect([missing.code, missing.errors]).toEqual([1, expect.stringContaining("Base 49 (bas_")]);
  const typo = await cli(["bases", "lisst"]);
  expect([typo.code, typo.errors]).toEqual([1, expect.stringContaining("Did you mean list?")]);
});

test("a base is created; psql gets its password by the environment; logs and runs show its syncs", {
  timeout: TIMEOUT_MS,
}, async () => {
  const created = await cli(["bases", "create", "appOne", "--json"], { AIRTABLE_API_KEY: GOOD_KEY });
  expect([created.code, created.errors]).toEqual([0, ""]);
  const { id } = JSON.parse(created.out);
  const credentials = JSON.parse((await cli(["credentials", "Inventory", "--json"])).out);

  // A terminal sends Ctrl-C to both.
  writeFileSync(
    join(folder, "psql"),
    '#!/bin/sh\nkill -INT $PPID; echo "$@"; env | grep ^PG | sort; exit 3\n',
  );
  chmodSync(join(folder, "psql"), 0o755);
  const path = `${folder}${delimiter}${process.env.PATH}`;
  const psql = await run(["psql", "Inventory", "--", "-c", "select 1"], { PATH: path });
  const [words, ...variables] = psql.out.trim().split("\n");
  expect([psql.code, words]).toEqual([3, "-c select 1"]);
  const { host, port, database, user, password } = credentials;
  expect(variables).toEqual(
    expect.arrayContaining([
      ...[
        `PGDATABASE=${database}`,
        `PGHOST=${host}`,
        `PGPASSWORD=${password}`,
        `PGPORT=${port}`,
        `PGUSER=${user}`,
      ],
    ]),
  );

  if (Bun.which("script")) {
    const words = ["script", "-qec", `${node ?? process.execPath} ${program} psql Inventory`, "/dev/null"];
    const env = { ...process.env, PATH: path, HOME: folder, XDG_CONFIG_HOME: join(folder, "config") };
    const terminal = Bun.spawn(words, { cwd: folder, env, stdout: "pipe", stderr: "ignore" });
    expect(await new Response(terminal.stdout).text()).toContain(
      "Change the data in Airtable, or through the proxy.",
    );
  }
  expect(psql.errors).toBe("");

  await recordRun(control.ctx.db, id, {
    ...{
      kind: "sweep",
      startedAt: new Date(Date.now() - 5000),
      completedAt: new Date(),
      requests: 4,
      waitMs: 0,
    },
    ...{ seen: 10, inserted: 3, updated: 2, deleted: 1 },
  });
  expect((await cli(["runs", id])).out).toContain("sweep");
  expect((await cli(["logs", id])).out).toContain("3 inserted, 2 updated, 1 deleted");
  expect((await cli(["issues", id])).out).toBe("No issues\n");

  const child = Bun.spawn([node ?? process.execPath, program, "logs", id, "--follow", "--json"], {
    env: { ...process.env, XDG_CONFIG_HOME: join(folder, "config") },
    stdout: "pipe",
  });
  const lines: string[] = [];
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) lines.push(...decoder.decode(chunk).trim().split("\n"));
  })();
  const printed = (count: number) =>
    until(() => lines.length === count, { what: `line ${count}`, timeoutMs: TIMEOUT_MS / 2 });
  try {
    await printed(1);
    const change = { ...changeOf(id), seen_at: new Date() };
    await control.ctx.db`insert into schema_changes ${control.ctx.db(change)}`;
    await printed(2);
  } finally {
    child.kill();
    await reading;
  }
  expect(lines.map((line) => JSON.parse(line).kind)).toEqual(["sweep", "field_dropped"]);

  // It ends once nobody reads what it prints.
  const following = [node ?? process.execPath, program, "logs", id, "--follow", "--json"];
  const head = Bun.spawn(["sh", "-c", '"$@" | head -n 1', "sh", ...following], {
    env: { ...process.env, XDG_CONFIG_HOME: join(folder, "config") },
    stdout: "pipe",
    stderr: "pipe",
  });
  const { value } = await head.stdout.getReader().read();
  expect(new TextDecoder().decode(value).trim()).toBe(lines[0]);
  await control.ctx
    .db`insert into schema_changes ${control.ctx.db({ ...changeOf(id), seen_at: new Date() })}`;
  expect([await new Response(head.stderr).text(), await head.exited]).toEqual(["", 0]);
  await cli(["bases", "pause", id]);
});

test("fifty bases as a file: nothing changes without a difference, and two runs at once end as one", {
  timeout: TIMEOUT_MS,
}, async () => {
  const pulled = await onFile(["pull"]);
  expect([pulled.code, pulled.errors]).toEqual([0, ""]);
  const file = contract();
  const text = readFileSync(file, "utf8");
  expect((await onFile(["pull", "--json"])).out).toContain('"changed": false');
  expect(readFileSync(file, "utf8")).toBe(text);

  calls.length = 0;
  const same = await onFile(["apply"]);
  expect([same.code, same.out]).toEqual([0, "Nothing to do\n"]);
  expect(calls.sort()).toEqual(["GET /api/v1/alerts", "GET /api/v1/bases", "GET /api/v1/workspaces"]);
  expect((await onFile(["diff"])).code).toBe(0);
  calls.length = 0;
  expect((await onFile(["check"])).code).toBe(0);
  // One request per base of the file, some at a time.
  expect(calls).toHaveLength(3 + BASES + 1);

  const added = `workspaces:\n  - name: Marketing\n    plan: team\n    reserve: 100\n${text.replace(
    /( {4}workspace: )null\n( {4}settings:\n {6}live: true\n {6}turbo: )false/,
    "$1Marketing\n$2true # soon",
  )}`;
  const withHook = added.replace(
    /^alerts:\n/m,
    `alerts:\n  webhooks:\n    - name: Ops\n      url: \${OPS_URL}\n      kinds: [red]\n`,
  );
  writeFileSync(file, withHook);
  const planned = await onFile(["diff", "--json"]);
  expect([planned.code, JSON.parse(planned.out)]).toMatchObject([
    2,
    [
      { effect: "create", what: "workspace Marketing" },
      { effect: "change", what: "base Inventory (appOne)" },
      { what: "webhook Ops" },
    ],
  ]);
  const unset = await onFile(["apply"], { GITHUB_ACTIONS: "true" });
  expect([unset.code, unset.errors]).toEqual([
    1,
    expect.stringMatching(/basetide.yaml:\d+: the environment variable OPS_URL is not set/),
  ]);
  const both = await Promise.all([1, 2].map(() => run(["apply"], { OPS_URL: "https://93.184.216.34/x" })));
  expect(both.map(({ code, errors }) => [code, code === 0 ? "" : errors])).toEqual([
    [0, ""],
    [0, ""],
  ]);
  expect((await onFile(["diff"])).out).toContain("No difference");
  const after = await onFile(["pull", "--json"]);
  expect(after.code).toBe(0);
  expect(readFileSync(file, "utf8").match(/name: Ops/g)).toHaveLength(1);
  expect(readFileSync(file, "utf8")).toContain("turbo: true # soon");
});

test("what rebuilds tables is asked before, and a breaking change in Airtable fails a check at its line", {
  timeout: TIMEOUT_MS,
}, async () => {
  const file = contract();
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace("lookups_as_text: false", "lookups_as_text: true"));
  const refused = await onFile(["apply"]);
  expect([refused.code, refused.errors]).toEqual([1, expect.stringContaining("error (not_confirmed)")]);
  expect((await onFile(["check"])).code).toBe(2);
  expect((await onFile(["apply", "--yes"])).code).toBe(0);

  const [base] = JSON.parse((await cli(["bases", "list", "--json"])).out).filter(
    (one: { base_id: string }) => one.base_id === "appPlain3",
  );
  const happened = (change: object) => control.ctx.db`
    insert into schema_changes ${control.ctx.db({ ...changeOf(base.id), seen_at: new Date(), ...change })}`;
  const column = { source_name: "Tags", name: "tags", source_type: "multipleLookupValues", type: "text[]" };
  // What the file itself has asked for.
  await happened({ kind: "field_retyped", before: column, after: { ...column, type: "text" } });
  await happened({
    kind: "field_renamed",
    severity: "rename",
    before: column,
    after: { ...column, name: "labels" },
  });
  expect((await onFile(["check"])).out).toBe("No breaking change\n");

  await happened({});
  const found = await onFile(["check"], { GITHUB_ACTIONS: "true" });
  const line =
    readFileSync(file, "utf8")
      .split("\n")
      .findIndex((one) => one.includes("appPlain3")) + 1;
  expect(found.code).toBe(2);
  expect(found.out).toContain(`basetide.yaml:${line}: Base 3: tasks.owner was dropped`);
  expect(found.errors).toContain(`::error file=${file},line=${line}::Base 3`);
  expect((await onFile(["pull"])).code).toBe(0);
  expect((await onFile(["check"])).code).toBe(0);
});

function changeOf(baseId: string) {
  const change = { kind: "field_dropped", severity: "breaking", table_name: "tasks", field_name: "owner" };
  return { base_id: baseId, ...change };
}

test("what is copied is in the file by name or id; what cannot be is found before anything is changed", {
  timeout: TIMEOUT_MS,
}, async () => {
  const file = contract();
  const head = "version: 1\nbases:\n  - base: appOne\n    selection:\n";
  const write = (selection: string, rest = "") => writeFileSync(file, `${head}${selection}${rest}`);
  write(
    "      tables:\n        Items: {view: Gone, omitted: [Files]}\n        Itmes: false\n",
    "    settings: {turbo: false}\n",
  );
  calls.length = 0;
  const refused = await onFile(["apply", "--yes"]);
  expect([refused.code, refused.errors]).toEqual([
    1,
    expect.stringMatching(/yaml:6: .*view Gone[\s\S]*yaml:7: .*Itmes/),
  ]);
  expect(calls.filter((call) => !call.startsWith("GET"))).toEqual([]);

  write(
    "      new_tables: ask\n      tables:\n        Items: {view: Open ones, omitted: [Files], hashed: [E-mail]} # ours\n",
  );
  const before = readFileSync(file, "utf8");
  expect((await onFile(["apply"])).errors).toContain("error (not_confirmed)");
  expect((await onFile(["check"])).out).toContain("Items.Files: copied -> omitted");
  expect((await onFile(["apply", "--yes"])).code).toBe(0);
  expect((await onFile(["apply"])).out).toBe("Nothing to do\n");
  expect((await cli(["bases", "selection", "Inventory"])).out).toMatch(
    /Notes +table +Notes +tblNotes +not yet decided/,
  );
  await onFile(["pull"]);
  expect(readFileSync(file, "utf8")).toContain(before.split("\n")[6]);
  rmSync(file);
  await onFile(["pull"]);
  expect(readFileSync(file, "utf8")).toContain("tblItems:\n          view: viwOpen\n");
  calls.length = 0;
  expect((await onFile(["apply"])).out).toBe("Nothing to do\n");
  expect(calls).toHaveLength(3);
});

test("a base is connected with a part of its tables, which are checked before it is created", {
  timeout: TIMEOUT_MS,
}, async () => {
  const created = await cli(["bases", "create", "appTwo", "--only", "Notes", "--json"], {
    AIRTABLE_API_KEY: GOOD_KEY,
  });
  const { id, selection } = JSON.parse(created.out);
  expect(selection).toMatchObject({ new_tables: "ignore", tables: [{ table_id: "tblNotes", copied: true }] });
  await deleteBase(control.ctx, await getBase(control.ctx.db, id));
  const file = contract();
  const entry = `version: 1\nbases:\n  - base: appTwo\n    api_key: \${KEY}\n    selection:\n      tables:\n`;
  writeFileSync(file, `${entry}        Nots: false\n`);
  const refused = await onFile(["apply"], { KEY: GOOD_KEY });
  expect([refused.code, refused.errors]).toEqual([
    1,
    expect.stringMatching(/yaml:7: there is no table Nots/),
  ]);
  writeFileSync(file, `${entry}        Notes: false\n        Items: {hashed: [E-mail]}\n`);
  expect((await onFile(["apply"], { KEY: GOOD_KEY })).errors).toContain("+ base appTwo");
  const shown = JSON.parse((await cli(["bases", "show", "appTwo", "--json"])).out);
  expect(shown.selection.tables).toMatchObject([
    { table_id: "tblItems", hashed_fields: ["fldEmail"] },
    { table_id: "tblNotes", copied: false },
  ]);
});

test("types are printed or written, compared in CI, and never written outside of the folder", {
  timeout: TIMEOUT_MS,
}, async () => {
  const [{ id }] = JSON.parse((await cli(["bases", "list", "--json"])).out);
  // These bases have no tables.
  const answer = (lang: string, ...paths: string[]) =>
    answers.set(`/api/v1/bases/${id}/types?lang=${lang}`, {
      lang,
      files: paths.map((path) => ({ path, text: `${path}\n` })),
    });
  answer("ts", "basetide.ts");
  answer("dbt", "sources.yml", "../../stg_tasks.sql");
  expect((await cli(["types", id])).out).toBe("basetide.ts\n");
  expect((await cli(["types", id, "--lang", "dbt"])).errors).toContain("--out");
  const out = join(folder, "src");
  const dbt = ["types", id, "--lang", "dbt", "--out", out];
  expect((await cli([...dbt, "--check"])).code).toBe(2);
  expect(existsSync(out)).toBe(false);
  expect((await cli(dbt)).code).toBe(0);
  expect(readFileSync(join(out, "stg_tasks.sql"), "utf8")).toBe("../../stg_tasks.sql\n");
  expect((await cli([...dbt, "--check"])).code).toBe(0);
  expect((await cli(["types", id, "--lang", "cobol"])).errors).toContain("hasura");
});

test("completion knows every command; bash and zsh accept their scripts", {
  timeout: TIMEOUT_MS,
}, async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { out, code } = await cli(["completion", shell]);
    expect([shell, code]).toEqual([shell, 0]);
    for (const word of ["login", "bases", "apply", "types"]) expect(out).toContain(word);
    if (!Bun.which(shell)) continue;
    const checked = Bun.spawnSync([shell, "-n", "/dev/stdin"], { stdin: new Blob([out]) });
    expect([shell, checked.exitCode, checked.stderr.toString()]).toEqual([shell, 0, ""]);
  }
  const asked = Bun.spawnSync([
    "bash",
    "-c",
    `source <(${node ?? process.execPath} ${program} completion bash); COMP_WORDS=(basetide bases s); COMP_CWORD=2; _basetide; echo "\${COMPREPLY[@]}"`,
  ]);
  expect(asked.stdout.toString().trim().split(" ").sort()).toEqual(["selection", "show", "sync"]);
});

/** An agent without a base, so that it has no SQL user, and its token. */
async function addAgent(name: string) {
  const { db } = control.ctx;
  const id = newId("agent");
  await db`insert into agents (id, account_id, name, may_propose, created_by)
    values (${id}, ${accountId}, ${name}, true, 'owner@example.org')`;
  return { id, token: await createAgentToken(db, { id, accountId, name }, { scopes: ["agent:read"] }) };
}

const loggedIn = () => ({ BASETIDE_URL: address(), BASETIDE_TOKEN: token });

test("agents are listed and revoked, and get new tokens", async () => {
  const agent = await addAgent("Claude");
  const listed = await cli(["agents", "list"], loggedIn());
  expect(listed.out).toMatch(/Claude .* yes /);
  const renewed = await cli(["agents", "token", "claude", "--json"], loggedIn());
  expect(JSON.parse(renewed.out)).toMatchObject({
    token: expect.stringMatching(/^bt_/),
    url: expect.stringMatching(/\/mcp$/),
  });
  expect((await cli(["agents", "calls", agent.id], loggedIn())).out).toBe("No calls yet\n");
  const unsure = await cli(["agents", "revoke", "Claude"], loggedIn());
  expect([unsure.code, unsure.errors]).toEqual([130, expect.stringContaining("--yes confirms it")]);
  expect((await cli(["agents", "revoke", "Claude", "--yes"], loggedIn())).out).toBe("Claude is revoked\n");
  const gone = await cli(["agents", "calls", "Claude"], loggedIn());
  expect(gone.errors).toContain("error (not_found): There is no agent Claude");
});

test("proposals are listed, shown in full, approved in part and rejected", async () => {
  const { db } = control.ctx;
  const [{ id: baseId }] = (await db<{ id: string }[]>`
    select id from bases where source_base_id = 'appPlain1'`) as unknown as [{ id: string }];
  await updateSettings(control.ctx, await getBase(db, baseId), { changeSets: true });
  const base = await getBase(db, baseId);
  const propose = (note: string) =>
    createChangeSet({ ...control.ctx, actor: { kind: "token", name: "Claude" } }, base, {
      isProposal: true,
      note,
      operations: [
        { operation: "create", table: "Tasks", fields: { Name: "Write\u001b[2J\nall" } },
        { operation: "create", table: "Tasks", fields: { Name: "Ship" } },
      ],
    });
  const { id } = await propose("Two tasks");
  expect((await cli(["proposals", "list", "--waiting"], loggedIn())).out).toContain(`${id}  proposed  2`);
  const { out } = await cli(["proposals", "show", id], loggedIn());
  expect(out).toContain("note: Two tasks\n");
  expect(out).toContain(
    "0  create a new record in Tasks\n     Name: Write\\u001b[2J\\u000aall\n1  create a new record in Tasks\n     Name: Ship",
  );
  const wrong = await cli(["proposals", "approve", id, "--only", "one"], loggedIn());
  expect(wrong.errors).toContain("--only takes positions");
  const approved = await cli(["proposals", "approve", id, "--only", "1"], loggedIn());
  expect([approved.code, approved.out]).toEqual([0, expect.stringContaining("Approved.")]);
  expect((await getChangeSet(db, baseId, id)).counts).toEqual({ waiting: 1, not_applied: 1 });
  const other = await propose("Not these");
  await cli(["proposals", "reject", other.id, "--reason", "Wrong table"], loggedIn());
  expect(await getChangeSet(db, baseId, other.id)).toMatchObject({
    state: "rejected",
    reason: "Wrong table",
  });
  const undo = await cli(["proposals", "undo", other.id], loggedIn());
  expect(undo.errors).toContain("error (conflict): This change set is rejected");
});

test("mcp prints the lines for clients, without a token", async () => {
  const { out } = await cli(["mcp"], { BASETIDE_URL: address(), BASETIDE_AGENT_TOKEN: "bt_secret" });
  expect(out).toContain(`claude mcp add --transport http basetide ${address()}/mcp`);
  expect(out).not.toContain("bt_secret");
  const { clients } = JSON.parse((await cli(["mcp", "--json"], { BASETIDE_URL: address() })).out);
  expect(clients.length).toBeGreaterThan(3);
});

test.each(PROTOCOL_REVISIONS)(
  "mcp --stdio carries revision %s for the protocol's own client",
  {
    timeout: TIMEOUT_MS,
  },
  async (revision) => {
    const agent = await addAgent(`Stdio ${revision}`);
    const isModern = revision === "2026-07-28";
    const client = new Client(
      { name: "test", version: "1" },
      isModern
        ? { versionNegotiation: { mode: { pin: revision } } }
        : { supportedProtocolVersions: [revision] },
    );
    const env = { BASETIDE_URL: address(), BASETIDE_AGENT_TOKEN: agent.token, XDG_CONFIG_HOME: folder };
    const transport = new StdioClientTransport({
      command: node ?? process.execPath,
      args: [program, "mcp", "--stdio"],
      env,
    });
    await client.connect(transport);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("query");
    const answers = await Promise.all([
      client.callTool({ name: "list_bases", arguments: {} }),
      client.callTool({ name: "search_docs", arguments: { text: "change sets" } }),
      client.callTool({ name: "query", arguments: { sql: "select 1" } }),
    ]);
    expect(answers.map(({ isError }) => isError ?? false)).toEqual([false, false, true]);
    expect(JSON.stringify(answers[1])).toContain("Change sets");
    await client.close();
  },
);

test("mcp --stdio says what is wrong: no token, another token, an address that does not answer", async () => {
  const call = `${JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/list" })}\n`;
  const none = await run(["mcp", "--stdio"], { BASETIDE_URL: address() }, call);
  expect([none.code, none.errors]).toEqual([1, expect.stringContaining("BASETIDE_AGENT_TOKEN")]);
  const env = { BASETIDE_AGENT_TOKEN: `bt_${"x".repeat(43)}` };
  const wrong = await run(["mcp", "--stdio"], { ...env, BASETIDE_URL: address() }, `no json\n${call}`);
  const lines = wrong.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { id: null, error: { code: -32700 } },
    { id: 7, error: { message: expect.stringContaining("401") } },
  ]);
  const away = await run(["mcp", "--stdio"], { ...env, BASETIDE_URL: "http://127.0.0.1:9" }, call);
  expect(JSON.parse(away.out)).toMatchObject({
    id: 7,
    error: { message: expect.stringContaining("cannot be reached") },
  });
});

test("mcp --stdio answers every request, whatever is in a line and whatever the address answers", async () => {
  const answers: Record<string, () => Response> = {
    page: () => new Response("<title>Sign in</title>", { headers: { "content-type": "text/html" } }),
    nothing: () => new Response(null, { status: 202 }),
    null: () => Response.json(null),
    stream: () => new Response("data: hello\n\n", { headers: { "content-type": "text/event-stream" } }),
    other: () => Response.json({ jsonrpc: "2.0", id: "another", result: {} }),
  };
  await using server = Bun.serve({
    port: 0,
    fetch: async (request) => answers[((await request.json()) as { method?: string }).method ?? "nothing"]!(),
  });
  const lines = ["null", "5", '"text"', "[]", '{"jsonrpc":"2.0","id":"done","result":{}}'];
  const asked = Object.keys(answers).map((method, id) => JSON.stringify({ jsonrpc: "2.0", id, method }));
  const env = { BASETIDE_AGENT_TOKEN: "bt_x", BASETIDE_URL: `http://127.0.0.1:${server.port}` };
  const { code, out } = await run(["mcp", "--stdio"], env, `${[...lines, ...asked].join("\n")}\n`);
  const got = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ error }) => error);
  expect(code).toBe(0);
  expect(got.filter(({ id }) => id === null)).toHaveLength(4);
  expect(got.flatMap(({ id }) => (id === null ? [] : [id])).sort()).toEqual(asked.map((_, id) => id));
  expect(got.find(({ id }) => id === 0).error.message).toContain("answered 200, which is no answer");
});
