/**
 * Measures the cost of detecting that a page of 100 records has not changed: µs of client CPU per page, and ratios to
 * the minimum of any client (read the body, discard it) and to the simple way (parse, stringify, hash).
 *
 * The variants alternate, and the median of each counts: only ratios within one run are meaningful.
 */
import type { SourceConnection, SourceTable } from "../../core/source";
import { createAirtable } from "../../core/source/airtable";

const PAGES_PER_TURN = 200;
const TURNS = 15;

const never = new AbortController().signal;
const table: SourceTable = {
  id: "tblA",
  name: "A",
  primaryFieldId: "fldName0000000001",
  fields: [{ id: "fldName0000000001", name: "Name", type: "text", sourceType: "singleLineText" }],
};

const server = Bun.spawn([process.execPath, `${import.meta.dir}/page-server.ts`], {
  stdin: "pipe",
  stdout: "pipe",
});
const { value } = await server.stdout.getReader().read();
const origin = `http://127.0.0.1:${Buffer.from(value!).toString().trim()}`;
try {
  for (const form of ["plain", "gzip"]) await measureAll(form);
} finally {
  server.kill();
}

async function measureAll(form: string): Promise<void> {
  const address = `${origin}/${form}`;
  const url = `${address}/v0/appA/tblA`;
  const upstreams = { "api.airtable.com": address };
  const connection = createAirtable({ upstreams, timeoutMs: 30_000 }).connect("patA.secret");
  const ways: Record<string, () => Promise<unknown>> = {
    "body thrown away": async () => (await fetch(url)).arrayBuffer(),
    "split, ids, fingerprints": () => fingerprints(connection),
    "parse, stringify, hash": () => plainWay(url),
  };
  const costs = new Map(Object.keys(ways).map((name) => [name, [] as number[]]));
  for (let turn = -1; turn < TURNS; turn++) {
    for (const [name, way] of Object.entries(ways)) {
      const cost = await cpuPerPage(way);
      // The first cycle warms up.
      if (turn >= 0) costs.get(name)!.push(cost);
    }
  }
  const medians = [...costs].map(([name, all]) => [name, median(all)] as const);
  const [least, , plain] = medians.map(([, cost]) => cost);
  for (const [name, cost] of medians) {
    const ratios = `${(cost / least!).toFixed(2)} x the body, ${(cost / plain!).toFixed(2)} x parsing`;
    console.log(`${form} ${name.padEnd(26)}${cost.toFixed(0).padStart(5)} µs/page   ${ratios}`);
  }
}

async function fingerprints(connection: SourceConnection): Promise<bigint> {
  const page = await connection.listPage("appA", table, {}, never);
  let all = 0n;
  for (let index = 0; index < page.size; index++) {
    if (page.id(index) !== "") all ^= page.fingerprint(index);
  }
  return all;
}

async function plainWay(url: string): Promise<bigint> {
  const { records } = JSON.parse(await (await fetch(url)).text()) as { records: { fields: object }[] };
  let all = 0n;
  for (const { fields } of records) all ^= Bun.hash.wyhash(JSON.stringify(fields));
  return all;
}

/** µs of CPU, all threads of this process. */
async function cpuPerPage(way: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let page = 0; page < PAGES_PER_TURN; page++) await way();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / PAGES_PER_TURN;
}

function median(values: number[]): number {
  return values.sort((one, other) => one - other)[Math.floor(values.length / 2)]!;
}
