/**
 * A minute of one base under three times its quota: a turbo sync by one of two workers, four clients through two
 * proxies, each a process of its own, and the sandbox, in another, says when the requests arrived. Then a client
 * that asks once a second beside the same sync.
 *
 * Run: `bun run bench traffic`
 */
import { startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { type Program, startProgram } from "../support/program";
import { quantile } from "../support/quantile";
import { startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";

const SECONDS = 60;
const QUIET_SECONDS = 20;
const CLIENTS = 4;
/** Requests a second that the clients ask for together: with the sync's five, three times the quota. */
const CLIENT_RATE = 10;
const LEAST_USED = 0.97;
const LONGEST_WAIT_MS = 250;
const LATENCY_MS = { minMs: 25, maxMs: 75 };

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess());
  // Up to 50 ms of jitter in the answers, before the source's state is read and after.
  await source.settings({ latency: { before: LATENCY_MS, after: LATENCY_MS } });
  const sourceId = await source.generate({ records: 2000, tables: 4, seed: 5 });
  const fleet = releases.use(await startFleet({ source, databaseUrl: server.url, workers: 0 }));
  const { config } = fleet.ctx;
  const env = {
    DATABASE_URL: server.url,
    SECRET_KEY: config.secretKey!,
    UPSTREAMS: Object.entries(config.upstreams)
      .map(([host, address]) => `${host}=${address}`)
      .join(","),
    LOG_LEVEL: "info",
  };
  const start = async (script: string, port: Record<string, string>): Promise<Program> => {
    const program = releases.use(startProgram(script, [], { ...env, ...port }));
    await program.says("started");
    return program;
  };
  const ports = [await freePort(), await freePort()];
  for (const port of ports) await start("apps/proxy/main.ts", { PROXY_PORT: String(port) });
  for (const _ of ports) await start("apps/worker/main.ts", { WORKER_PORT: "0" });
  const base = await fleet.connect(sourceId, { turbo: true });
  await fleet.synced(base.id);
  const client = clientOf(`/api.airtable.com/v0/${sourceId}`, source.key);

  await source.call("DELETE", "log");
  const untilMs = performance.now() + SECONDS * 1000;
  const gapMs = (CLIENTS / CLIENT_RATE) * 1000;
  const clients = Array.from({ length: CLIENTS }, (_, index) =>
    loop(untilMs, gapMs, () => client(ports[index % 2]!)),
  );
  const statuses = (await Promise.all(clients)).flat().map((answer) => answer.status);
  const busy = await source.logSummary();
  const used = busy.bases[sourceId]!.requests / (SECONDS * 5);

  await source.call("DELETE", "log");
  const waits = (await loop(performance.now() + QUIET_SECONDS * 1000, 1000, () => client(ports[0]!))).map(
    (answer) => answer.ms,
  );
  // What the source itself took is not the quota's.
  const p95 = quantile(waits, 0.95) - 2 * ((LATENCY_MS.minMs + LATENCY_MS.maxMs) / 2);
  const most = Math.max(
    busy.bases[sourceId]!.maxPerSecond,
    (await source.logSummary()).bases[sourceId]!.maxPerSecond,
  );

  const unused = ratio(LEAST_USED / used, 1);
  const wait = ratio(p95 / LONGEST_WAIT_MS, 1);
  const failed = statuses.filter((status) => status !== 200).length;
  table(
    ["figure", "measured", "of its limit"],
    [
      ["requests that the source answered 429", busy.rateLimited, ""],
      ["most arrivals in any second, of 5", most, (most / 5).toFixed(3)],
      [`quota used in ${SECONDS} s, of 5/s, at least ${LEAST_USED}`, used.toFixed(4), unused.text],
      ["clients' requests answered, other than with 200", `${statuses.length}, ${failed}`, ""],
      [
        `client once a second beside a turbo sync, wait p95, of ${LONGEST_WAIT_MS} ms`,
        `${p95.toFixed(0)} ms`,
        wait.text,
      ],
    ],
  );
  return busy.rateLimited === 0 && most <= 5 && unused.isWithin && wait.isWithin && failed === 0;
}

/** Asks for one record through a proxy, and says how long it took. */
function clientOf(path: string, key: string) {
  return async (port: number): Promise<{ status: number; ms: number }> => {
    const from = performance.now();
    const response = await fetch(`http://127.0.0.1:${port}${path}/Projects?maxRecords=1`, {
      headers: { authorization: `Bearer ${key}` },
    });
    await response.arrayBuffer();
    return { status: response.status, ms: performance.now() - from };
  };
}

/** Calls `work` every `gapMs`, or as soon as the last call has ended when that is later, until the time is over. */
async function loop<T>(untilMs: number, gapMs: number, work: () => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  while (performance.now() < untilMs) {
    const next = performance.now() + gapMs;
    answers.push(await work());
    await Bun.sleep(Math.max(0, next - performance.now()));
  }
  return answers;
}
