/**
 * Measures the first copy of a base, from the request that connects it until the sync is complete, beside a bare loop in the
 * same run: one request after the other, each page inserted as it came, without a schema, retries or another check.
 *
 * The source answers after 200 ms and enforces its limit of five requests a second. Worker, proxy and console are processes of
 * their own, from the files of the image and with its options. Each round connects a new base, and loops over an equal one at the same time.
 * Run: `bun run bench first-copy`, with COPY_ROUNDS (3). COPY_CALLS prints each call of the first round.
 */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { bundleInto } from "../../apps/bundle";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createToken } from "../../core/control/accounts";
import { installationId } from "../../core/control/placement/clusters";
import { createLogger } from "../../core/log";
import { spareDatabases } from "../../core/replica";
import { type Fleet, startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { until } from "../support/poll";
import { peakResidentBytes } from "../support/process-usage";
import { startProgram } from "../support/program";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { scratchFolder } from "../support/scratch";
import { testAccount } from "../support/test-account";
import { ratio, table } from "./print";
import { IMAGE_ENVIRONMENT } from "./runtime-environment";

const ROUNDS = Number(process.env.COPY_ROUNDS ?? 3);
const TABLES = [10_000, 200];
const FIELDS = 15;
/** `memoryMb`: of the three processes. */
const LIMITS = { copy: 1.06, connectingMs: 300, memoryMb: 240 };
const ROLES = ["worker", "proxy", "console"];
const MB = 2 ** 20;
/** Half of an answer's time lies before the records are read. */
const HALF_MS = { minMs: 100, maxMs: 100 };
const WINDOW_MS = 1000;
const REQUESTS_PER_WINDOW = 5;
const TIMEOUT_MS = 120_000;
/** Pages at the beginning and the end that are printed. */
const SHOWN_PAGES = 10;

/** A base of the source. */
interface Source {
  baseId: string;
  tableIds: string[];
}

interface Copied {
  connectingMs: number;
  seconds: number;
  requests: number;
}

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const folder = scratchFolder("first-copy");
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const log = createLogger("fatal", "bench");
  const service = join(folder, "service");
  await bundleInto(service);
  const server = await startEmbeddedPostgres({ dataDir: join(folder, "postgres"), port: 0, log });
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess());
  await source.settings({ latency: { before: HALF_MS, after: HALF_MS } });
  const bases: Source[] = [];
  for (let base = 0; base < 2 * ROUNDS; base++) bases.push(await createSource(source, base));
  const [consolePort, proxyPort, workerPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const env = {
    REPLICA_URL: server.url,
    SECRET_KEY: randomBytes(32).toString("base64"),
    CONSOLE_PORT: String(consolePort),
    CONSOLE_URL: `http://127.0.0.1:${consolePort}`,
  };
  const fleet = releases.use(
    await startFleet({ source, databaseUrl: server.url, env, workers: 0, leavesBases: true }),
  );
  const ports = { WORKER_PORT: String(workerPort), PROXY_PORT: String(proxyPort) };
  const pids: number[] = [];
  for (const role of ROLES) {
    const program = startProgram(join(service, "apps/main.ts"), [role], {
      ...env,
      ...ports,
      ...source.clientEnv,
      ...IMAGE_ENVIRONMENT,
      DATABASE_URL: server.url,
      DATA_DIR: folder,
      LOG_LEVEL: "info",
    });
    releases.use(program);
    await program.says("started");
    pids.push(program.pid);
  }
  const account = await testAccount(fleet.ctx.db, { email: "copy@example.org" });
  const token = await createToken(fleet.ctx.db, account.id, "bench");
  const api = `${env.CONSOLE_URL}/api/v1/bases`;
  const rounds: { bare: number; ours: Copied }[] = [];
  /** With one base, bytes. */
  let peaks: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await untilPrepared(fleet, server.url);
    const [looped, copied] = bases.slice(2 * round);
    const [bare, ours] = await Promise.all([
      bareLoop(source, looped!, server.url, round),
      copy(source, fleet, { api, token, baseId: copied!.baseId }),
    ]);
    rounds.push({ bare, ours });
    if (round === 0) peaks = pids.map(peakResidentBytes);
    if (round === 0 && process.env.COPY_CALLS) await printCalls(source, copied!.baseId);
  }
  table(
    ["round", "bare loop, s", "ours, s", "requests", "connecting, ms", "of the bare loop"],
    rounds.map(({ bare, ours }, round) => [
      round + 1,
      bare.toFixed(2),
      ours.seconds.toFixed(2),
      ours.requests,
      ours.connectingMs.toFixed(0),
      (ours.seconds / bare).toFixed(3),
    ]),
  );
  const copies = ratio(median(rounds.map(({ bare, ours }) => ours.seconds / bare)) / LIMITS.copy, 1);
  const connectingMs = median(rounds.map(({ ours }) => ours.connectingMs));
  const connecting = ratio(connectingMs / LIMITS.connectingMs, 1);
  const memory = ratio(peaks.reduce((sum, one) => sum + one, 0) / MB / LIMITS.memoryMb, 1);
  const shown = ROLES.map((role, nth) => `${role} ${(peaks[nth]! / MB).toFixed(0)}`).join(", ");
  console.log(
    `\npeak resident memory with one base, MB: ${shown}; in all, of ${LIMITS.memoryMb} MB: ${memory.text}`,
  );
  console.log(`a first copy, of ${LIMITS.copy} times the bare loop (median): ${copies.text}`);
  console.log(`connecting, of ${LIMITS.connectingMs} ms (median): ${connecting.text}`);
  const { rateLimited } = await source.logSummary();
  console.log(`429 answers: ${rateLimited}`);
  return copies.isWithin && connecting.isWithin && memory.isWithin && rateLimited === 0;
}

async function createSource(source: SandboxProcess, base: number): Promise<Source> {
  const id = (prefix: string, nth: number) => `${prefix}B${base}x${String(nth).padStart(11, "0")}`;
  const tables = TABLES.map((records, nth) => ({
    id: id("tbl", nth),
    name: `Table ${nth}`,
    fields: Array.from({ length: FIELDS }, (_, index) => ({
      id: id("fld", nth * FIELDS + index),
      name: `Field ${index}`,
      type: index % 3 === 1 ? "number" : "singleLineText",
      ...(index % 3 === 1 && { options: { precision: 0 } }),
    })),
    records: Array.from({ length: records }, (_, record) => ({
      id: randomId(),
      fields: Object.fromEntries(
        Array.from({ length: FIELDS }, (__, index) => [
          `Field ${index}`,
          index % 3 === 1 ? record * index : `Value ${record} of field ${index}`,
        ]),
      ),
    })),
  }));
  const { baseId } = (await source.call("POST", "bases", { tables })) as { baseId: string };
  return { baseId, tableIds: tables.map(({ id: tableId }) => tableId) };
}

/** As Airtable's: the estimate of a table's size depends on their last characters. */
function randomId(): string {
  return `rec${randomBytes(16)
    .toString("base64")
    .replace(/[^0-9A-Za-z]/g, "")
    .padEnd(14, "0")
    .slice(0, 14)}`;
}

/** Prints the calls but those of all pages: when each arrived after the first one. */
async function printCalls(source: SandboxProcess, baseId: string): Promise<void> {
  const calls = (await source.call("GET", `log?base=${baseId}`)) as {
    arrivalMs: number;
    method: string;
    path: string;
  }[];
  const isPage = ({ path }: { path: string }) =>
    path.includes('"offset"') && !path.includes("filterByFormula");
  calls.forEach((call, nth) => {
    const isShown = !isPage(call) || nth < SHOWN_PAGES || nth >= calls.length - SHOWN_PAGES;
    const at = `${((call.arrivalMs - calls[0]!.arrivalMs) / 1000).toFixed(2)} s`;
    if (isShown) console.log(`${nth + 1}`.padStart(4), at.padStart(8), call.method, call.path.slice(0, 110));
  });
}

/** Waits until the service has prepared a database for the next base. */
async function untilPrepared({ ctx }: Fleet<SandboxProcess>, url: string): Promise<void> {
  const installation = await installationId(ctx.db);
  const isPrepared = async () => {
    const spares = await spareDatabases(url, installation);
    return spares.some(({ isComplete }) => isComplete);
  };
  await until(isPrepared, { what: "a spare database is prepared", timeoutMs: TIMEOUT_MS });
}

/** @returns how long it took, s */
async function bareLoop(
  source: SandboxProcess,
  { baseId, tableIds }: Source,
  url: string,
  round: number,
): Promise<number> {
  await using sql = disposable(postgres(url, { max: 1, onnotice: () => {} }));
  await sql.unsafe(`create table bare_${round} (id text primary key, record jsonb)`);
  const from = performance.now();
  const sentAt: number[] = [];
  for (const id of tableIds) {
    let offset: string | undefined;
    do {
      const nth = sentAt.at(-REQUESTS_PER_WINDOW);
      if (nth !== undefined) await Bun.sleep(Math.max(0, nth + WINDOW_MS + 1 - performance.now()));
      sentAt.push(performance.now());
      const answer = await fetch(`${source.url}/v0/${baseId}/${id}${offset ? `?offset=${offset}` : ""}`, {
        headers: { authorization: `Bearer ${source.key}` },
      });
      if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
      const page = (await answer.json()) as { records: { id: string }[]; offset?: string };
      await sql`
        insert into ${sql(`bare_${round}`)}
        select r->>'id', r from jsonb_array_elements(${sql.json(page.records as never)}) as r`;
      offset = page.offset;
    } while (offset);
  }
  return (performance.now() - from) / 1000;
}

async function copy(
  source: SandboxProcess,
  fleet: Fleet<SandboxProcess>,
  { api, token, baseId }: { api: string; token: string; baseId: string },
): Promise<Copied> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = { platform: "airtable", api_key: source.key, base_id: baseId, settings: { turbo: true } };
  const from = performance.now();
  const answer = await fetch(api, { method: "POST", headers, body: JSON.stringify(body) });
  const made = (await answer.json()) as { id: string };
  if (!answer.ok) throw new Error(JSON.stringify(made));
  const connectingMs = performance.now() - from;
  const isSynced = async () =>
    (await fleet.ctx.db`select from bases where id = ${made.id} and sync_completed_at is not null`).length >
    0;
  await until(isSynced, { what: "the first sync is complete", timeoutMs: TIMEOUT_MS, intervalMs: 10 });
  const seconds = (performance.now() - from) / 1000;
  const { bases } = await source.logSummary();
  return { connectingMs, seconds, requests: bases[baseId]!.requests };
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

function disposable(sql: postgres.Sql): postgres.Sql & AsyncDisposable {
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) });
}
