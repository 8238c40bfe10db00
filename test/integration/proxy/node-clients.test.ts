/** Little-used clients and generators of Node programs, in the versions that the proxy guide names, through the preload. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installPinned, missingPackages } from "../../support/install-pinned";
import { node } from "../../support/node";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";
import { repoRoot } from "../../support/source-files";
import { pinned, runs } from "../../support/tools/table";

const PACKAGES = [join(repoRoot, "test/support/clients"), "basetide-clients", "clients"] as const;
const TIMEOUT_MS = 120_000;

let stack: ProxyStack;
let base: Replicated;
let baseId: string;
let folder: string;
let missing: string | undefined;

beforeAll(async () => {
  missing = node === undefined ? "there is no Node" : missingPackages(...PACKAGES);
  if (missing !== undefined) return;
  folder = join(installPinned(...PACKAGES), `run-${crypto.randomUUID().slice(0, 8)}`);
  mkdirSync(folder);
  stack = await proxyStack();
  baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [
      {
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Amount", type: "number", options: { precision: 0 } },
        ],
        records: [{ fields: { Name: "seed", Amount: 0 } }],
      },
    ],
  });
  base = await stack.connect(baseId);
  await base.sync();
}, TIMEOUT_MS);
afterAll(async () => {
  if (folder) rmSync(folder, { recursive: true });
  await stack?.[Symbol.asyncDispose]();
});

/** Each creates a record, or prints the names of all. */
const programs = {
  "airtable-node": `
    const Airtable = require("airtable-node");
    const table = new Airtable({ apiKey: process.env.AIRTABLE_API_KEY }).base(process.env.BASE).table("Tasks");
    const names = async () => (await table.list({ maxRecords: 100 })).records.map(({ fields }) => fields.Name);
    const create = (Name) => table.create({ fields: { Name } });`,
  "airtable-plus": `
    const Airtable = require("airtable-plus");
    const table = new Airtable({ baseID: process.env.BASE, apiKey: process.env.AIRTABLE_API_KEY, tableName: "Tasks" });
    const names = async () => (await table.read()).map(({ fields }) => fields.Name);
    const create = (Name) => table.create({ Name });`,
};

for (const [name, program] of Object.entries(programs)) {
  test(`${name} reads and writes, and SQL shows it`, runOf(name), async ({ skip }) => {
    skip(missing !== undefined, missing);
    const file = join(folder, `${name}.cjs`);
    writeFileSync(
      file,
      `${program}
    const name = process.argv[2];
    (name ? create(name) : names()).then((answer) => console.log(JSON.stringify(answer)));`,
    );
    await run(file, name);
    expect(JSON.parse(await run(file))).toEqual(expect.arrayContaining(["seed", name]));
    expect((await base.rows("tasks")).map((row) => row.name)).toContain(name);
  });
}

test("airtable-json reads", runOf("airtable-json"), async ({ skip }) => {
  skip(missing !== undefined, missing);
  const file = join(folder, "read.mjs");
  writeFileSync(
    file,
    `import airtableJson from "airtable-json";
    const read = airtableJson.default ?? airtableJson;
    const options = { auth_key: process.env.AIRTABLE_API_KEY, base_name: process.env.BASE, primary: "Tasks" };
    console.log(JSON.stringify((await read(options)).map(({ Name }) => Name)));`,
  );
  expect(JSON.parse(await run(file))).toContain("seed");
});

test(
  "airtable-ts-codegen and airtable-typegen describe the base",
  runOf("airtable-ts-codegen", "airtable-typegen"),
  async ({ skip }) => {
    skip(missing !== undefined, missing);
    const bin = (name: string) => join(folder, "../node_modules/.bin", name);
    await run(bin("airtable-ts-codegen"));
    expect(readFileSync(join(folder, `${baseId}.ts`), "utf8")).toContain("amount: number | null");
    await run(bin("airtable-typegen"), baseId, "-o", "types.ts");
    expect(readFileSync(join(folder, "types.ts"), "utf8")).toContain("'Amount'?: number");
  },
);

test(
  "airtable-mcp-server lists and creates records, and SQL shows it",
  runOf("airtable-mcp-server"),
  async ({ skip }) => {
    skip(missing !== undefined, missing);
    const call = (name: string, args: object) => ({
      ...{ id: name, method: "tools/call" },
      params: { name, arguments: { baseId, ...args } },
    });
    const start = {
      ...{ id: "start", method: "initialize" },
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
    };
    const tableId = stack.sandbox.control.dump(baseId).tables[0]!.id;
    const answers = await converse(join(folder, "../node_modules/.bin/airtable-mcp-server"), [
      start,
      { method: "notifications/initialized" },
      call("list_records", { tableId }),
      call("create_record", { tableId, fields: { Name: "by MCP" } }),
    ]);
    expect(answers.get("list_records")).toContain("seed");
    expect(answers.get("create_record")).toContain("by MCP");
    expect((await base.rows("tasks")).map((row) => row.name)).toContain("by MCP");
  },
);

/** Sends each message, and waits for the answer to those that have an id. @returns the answers' texts, by id */
async function converse(
  program: string,
  messages: { method: string; id?: string }[],
): Promise<Map<string, string>> {
  const child = Bun.spawn([node!, program], {
    cwd: folder,
    env: env(),
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const answers = new Map<string, string>();
  const lines = child.stdout.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  let received = "";
  try {
    for (const message of messages) {
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
      child.stdin.flush();
      while (message.id !== undefined && !answers.has(message.id)) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`${program} ended: ${await new Response(child.stderr).text()}`);
        received += value;
        const whole = received.split("\n");
        received = whole.pop()!;
        for (const line of whole) answers.set(JSON.parse(line).id, line);
      }
    }
  } finally {
    child.kill();
    await child.exited;
  }
  return answers;
}

function runOf(...names: string[]) {
  return { ...runs(...names.map((name) => pinned(PACKAGES[0], name))), timeout: TIMEOUT_MS };
}

test("the guide names these versions", () => {
  const guide = readFileSync(join(repoRoot, "docs/proxy.md"), "utf8");
  const { dependencies } = JSON.parse(readFileSync(join(PACKAGES[0], "package.json"), "utf8"));
  for (const [name, version] of Object.entries(dependencies)) expect(guide).toContain(`${name} ${version}`);
});

async function run(...words: string[]): Promise<string> {
  const child = Bun.spawn([node!, ...words], {
    cwd: folder,
    env: env(),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${words.join(" ")}: ${out}${errors}`);
  return out;
}

function env() {
  return {
    ...process.env,
    ...{ AIRTABLE_API_KEY: stack.sandbox.key, AIRTABLE_TYPEGEN_ACCESS_TOKEN: stack.sandbox.key },
    ...{ BASE: baseId, AIRTABLE_BASE_ID: baseId, BASETIDE_PROXY: `http://localhost:${stack.proxy.port}` },
    NODE_OPTIONS: `--import=${join(repoRoot, "apps/proxy/redirect.mjs")}`,
  };
}
