/**
 * `bun run matrix`: runs every cell, one version after the other, and writes `docs/compatibility.md`. Prints each cell
 * when it is done, and exits with 1 if one has an unexpected result.
 *
 * Usage: bun run matrix [--only <part of a cell's name>] [--short] [--steps] [--jobs <versions at once>]; with either
 * of the first two, the page is not written
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import postgres from "postgres";
import { type SandboxHandle, startSandbox } from "../../apps/sandbox/server";
import { pgbouncerVersion } from "../support/servers/pgbouncer";
import type { PostgresVersion } from "../support/servers/postgres-versions";
import { repoRoot } from "../support/source-files";
import { ALL_CELLS, nameOf, SHORT_CELLS } from "./cells";
import { compatibilityPage, type Result, type RunFacts } from "./page";
import { isExpected, runCell } from "./run-cell";
import { type Servers, startServers } from "./servers";

const PAGE = "docs/compatibility.md";

const { values: given } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    short: { type: "boolean", default: false },
    steps: { type: "boolean", default: false },
    jobs: { type: "string", default: "1" },
  },
});
const cells = (given.short ? SHORT_CELLS : ALL_CELLS).filter((cell) => nameOf(cell).includes(given.only));
const results: Result[] = [];
const facts: RunFacts = {
  date: new Date().toISOString().slice(0, 10),
  postgres: {},
  pgbouncer: pgbouncerVersion(),
  bun: Bun.version,
};
let wrong = 0;
{
  await using sandbox = await startSandbox({ port: 0, settings: { rateLimitOff: true } });
  const versions = [...new Set(cells.map((cell) => cell.version))];
  const workers = Array.from({ length: Number(given.jobs) }, async () => {
    for (let version = versions.shift(); version !== undefined; version = versions.shift())
      await runVersion(version, sandbox);
  });
  await Promise.all(workers);
}
console.log(wrong === 0 ? "Every cell is what it has to be." : `${wrong} are not what they have to be.`);
process.exit(wrong === 0 ? 0 : 1);

async function runVersion(version: PostgresVersion, sandbox: SandboxHandle): Promise<void> {
  await using servers = await startServers(version);
  facts.postgres[version] = await fullVersion(servers);
  for (const cell of cells.filter((one) => one.version === version)) {
    const from = performance.now();
    const result = { cell, outcomes: await runCell(servers, sandbox, cell) };
    results.push(result);
    print(result, performance.now() - from);
    // After each cell, so that a run that is cut short leaves its results.
    if (cells.length === ALL_CELLS.length)
      writeFileSync(join(repoRoot, PAGE), compatibilityPage(results, facts));
  }
}

async function fullVersion({ replicas }: Servers): Promise<string> {
  const sql = postgres(replicas.url, { max: 1, onnotice: () => {} });
  const [row] = await sql<{ server_version: string }[]>`show server_version`;
  await sql.end();
  return row!.server_version;
}

function print({ cell, outcomes }: Result, ms: number): void {
  console.log(`${nameOf(cell)} (${(ms / 1000).toFixed(1)} s)`);
  for (const outcome of outcomes) {
    const { purpose, verdict, steps, detail } = outcome;
    const isRight = isExpected(cell, outcome);
    if (!isRight) wrong += 1;
    const went = steps.filter(({ error }) => error === undefined).length;
    console.log(`  ${isRight ? "ok   " : "WRONG"} ${purpose}: ${verdict}, ${went} steps. ${detail}`);
    if (!given.steps) continue;
    for (const { name, ms: took } of steps) console.log(`        ${String(took).padStart(6)} ms ${name}`);
  }
}
