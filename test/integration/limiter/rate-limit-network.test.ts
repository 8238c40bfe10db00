/**
 * I4 on the internet: round trips of 80 ms ± 20 and TLS handshakes between our processes and the source, which counts
 * arrivals. `bun run bench traffic` is the long form.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LogEntry } from "../../../apps/sandbox/request-log";
import { createAccount } from "../../../core/control/accounts";
import { type Base, createBase, resume, updateSettings } from "../../../core/control/bases";
import { ArrivalCheck } from "../../chaos/harness/arrivals";
import { controlDatabase } from "../../support/database";
import { type Fleet, startFleet } from "../../support/fleet";
import { freePort } from "../../support/free-port";
import { startProgram } from "../../support/program";
import { type SandboxProcess, startSandboxProcess } from "../../support/sandbox-process";
import { startWorkerProcess } from "../../support/worker-process";

const releases = new AsyncDisposableStack();
let source: SandboxProcess;
let fleet: Fleet<SandboxProcess>;
const proxyPorts: number[] = [];

beforeAll(async () => {
  source = releases.use(await startSandboxProcess({ network: "80±20" }));
  const { url: databaseUrl } = releases.use(await controlDatabase());
  fleet = releases.use(await startFleet({ source, databaseUrl, workers: 0 }));
  await Promise.all([1, 2].map(async () => releases.use(await startWorkerProcess(fleet, source.clientEnv))));
  for (const _ of [1, 2]) {
    const port = await freePort();
    const env = {
      DATABASE_URL: databaseUrl,
      REPLICA_URL: fleet.ctx.config.replicaUrl,
      SECRET_KEY: fleet.ctx.config.secretKey,
      LOG_LEVEL: "info",
      PROXY_PORT: String(port),
      ...source.clientEnv,
    };
    await releases.use(startProgram("apps/proxy/main.ts", [], env)).says("started");
    proxyPorts.push(port);
  }
});
afterAll(() => releases.disposeAsync());

/** Expects the source's requests to be within the limit. @returns the number of requests */
async function expectKept(sourceBaseId: string): Promise<number> {
  const entries = (await source.call("GET", `log?base=${sourceBaseId}`)) as LogEntry[];
  const check = new ArrivalCheck();
  const arrivals = entries.map(({ arrivalMs: at, method, path }) => ({ at, what: `${method} ${path}` }));
  check.add(sourceBaseId, arrivals);
  expect(check.violations).toEqual([]);
  expect(entries.filter(({ status }) => status === 429)).toEqual([]);
  return entries.length;
}

/** Moves a base that was connected on loopback to the network; the requests for connecting it no longer count. */
async function begin(...bases: Base[]): Promise<void> {
  await source.call("DELETE", "log");
  await source.call("POST", "quota", { reset: true });
  for (const base of bases) await resume(fleet.ctx, base);
}

test("I4: two workers that sync one source base for two accounts stay within its limit", {
  timeout: 120_000,
}, async () => {
  const { ctx } = fleet;
  const sourceBaseId = await source.generate({ records: 800, tables: 2, seed: 3 });
  const other = await createAccount(ctx.db, { email: "other@example.org", password: "correct horse" });
  const settings = { turbo: true, live: false, paused: true };
  const bases = await Promise.all([
    fleet.connect(sourceBaseId, settings),
    createBase(ctx, other.id, { platform: "airtable", apiKey: source.key, sourceBaseId, settings }),
  ]);
  await begin(...bases);
  await Promise.all(bases.map((base) => fleet.synced(base.id)));
  await Promise.all(bases.map((base) => fleet.synced(base.id)));
  expect(await expectKept(sourceBaseId)).toBeGreaterThan(30);
  for (const base of bases) await updateSettings(ctx, base, { paused: true });
});

test("I4: twelve concurrent clients of two proxies stay within the limit after an idle period", {
  timeout: 120_000,
}, async () => {
  const sourceBaseId = await source.generate({ records: 20, tables: 1, seed: 4 });
  const base = await fleet.connect(sourceBaseId, { paused: true });
  await begin(base);
  await fleet.synced(base.id);
  await updateSettings(fleet.ctx, base, { paused: true });
  const ask = async (client: number) => {
    const url = `http://127.0.0.1:${proxyPorts[client % 2]}/api.airtable.com/v0/${sourceBaseId}/Projects?maxRecords=1`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${source.key}` } });
    await answer.arrayBuffer();
    return answer.status;
  };
  // Both proxies measure the network first, and then know it.
  for (const _ of [1, 2]) {
    const statuses = await Promise.all(Array.from({ length: 12 }, (_, client) => ask(client)));
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
  await expectKept(sourceBaseId);
});
