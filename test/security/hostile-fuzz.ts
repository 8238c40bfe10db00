/**
 * Runs a service of real processes against customers' servers that break the protocol, for any duration.
 *
 * `bun test/security/hostile-fuzz.ts --minutes 60 [--seed 1]`. New bases are connected to a server with another
 * behavior each time; a connected server that behaved turns hostile, which affects the worker and, with every write,
 * the proxy. Prints a table, and exits with 1 if a process died, froze for more than a second, took more than 1 GB, or
 * prevented another base from working.
 */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { freePort } from "../support/free-port";
import type { Freezes } from "../support/health-watch";
import { BEHAVIORS, hostilePostgres, randomOf, turning } from "../support/hostile-postgres";
import { until } from "../support/poll";
import { residentBytes } from "../support/process-usage";
import { type Program, startProgram } from "../support/program";
import { startSandboxProcess } from "../support/sandbox-process";
import { scratchFolder } from "../support/scratch";
import { unsafeButFast } from "../support/server";

const MAX_FREEZE_MS = 1000;
const MAX_RSS_BYTES = 1024 ** 3;
const MIN_AVAILABILITY = 0.99;
/** How long the connected server has one behavior, ms. */
const TURN_MS = 3000;
/** A write to a base whose database is unreachable is answered within this time, ms. */
const WRITE_MS = 30_000;

const { values } = parseArgs({ options: { minutes: { type: "string" }, seed: { type: "string" } } });
const minutes = Number(values.minutes ?? 5);
const seed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const random = randomOf(seed);
console.log(`hostile servers for ${minutes} minutes, --seed ${seed}`);

await using releases = new AsyncDisposableStack();
const folder = scratchFolder("hostile-fuzz");
releases.defer(() => rmSync(folder, { recursive: true, force: true }));
const server = await startEmbeddedPostgres({
  dataDir: join(folder, "postgres"),
  port: 0,
  log: createLogger("error", "fuzz"),
  settings: unsafeButFast,
});
releases.defer(() => server.stop());
const sandbox = releases.use(await startSandboxProcess());
const admin = postgres(server.url, { max: 1, onnotice: () => {} });
releases.defer(() => admin.end({ timeout: 1 }));
await admin.unsafe("create role customer login password 'secret'");
for (const name of ["honest", "turncoat"]) await admin.unsafe(`create database ${name} owner customer`);
const { port: databasePort } = new URL(server.url);
const upstream = { host: "127.0.0.1", port: Number(databasePort) };
const turncoat = releases.use(await hostilePostgres({ seed }));
const attacker = releases.use(await hostilePostgres({ seed: seed + 1 }));

const ports = { console: await freePort(), worker: await freePort(), proxy: await freePort() };
const source = sandbox.url.replace(/\/$/, "");
const env = {
  NODE_ENV: "test",
  DATABASE_URL: server.url,
  REPLICA_URL: server.url,
  SECRET_KEY: randomBytes(32).toString("base64"),
  DATA_DIR: join(folder, "data"),
  UPSTREAMS: `api.airtable.com=${source},content.airtable.com=${source}`,
  CONSOLE_PORT: String(ports.console),
  WORKER_PORT: String(ports.worker),
  PROXY_PORT: String(ports.proxy),
  CONSOLE_URL: `http://127.0.0.1:${ports.console}`,
  API_REQUESTS_PER_MINUTE: "100000",
  LOG_LEVEL: "warn",
};
const at = (role: keyof typeof ports) => `http://127.0.0.1:${ports[role]}`;
const programs = new Map<keyof typeof ports, Program>();
const deaths: string[] = [];
let isOver = false;

async function start(role: keyof typeof ports): Promise<void> {
  const program = startProgram(`apps/${role}/main.ts`, [], env);
  programs.set(role, program);
  void program.exited.then((code) => {
    if (isOver || programs.get(role) !== program) return;
    deaths.push(`${role} (${code}): ${program.output().slice(-600)} ${program.errors().slice(-600)}`);
    void start(role);
  });
  await until(async () => (await fetch(`${at(role)}/healthz`)).ok, {
    what: `${role} is up`,
    retryErrors: true,
    timeoutMs: 60_000,
  });
}
releases.defer(async () => {
  isOver = true;
  for (const program of programs.values()) await program[Symbol.asyncDispose]();
});
await start("console");
await Promise.all([start("worker"), start("proxy")]);

const email = ["account", "create", "--email", "fuzz@example.org", "--password", "correct horse", "--json"];
await using operator = startProgram("apps/operator/main.ts", email, env);
await operator.exited;
const token = /"token":\s*"([^"]+)"/.exec(operator.output())?.[1];
if (!token) throw new Error(`no token: ${operator.output()} ${operator.errors()}`);

function api(method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(`${at("console")}/api/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    signal: AbortSignal.timeout(60_000),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const connectBody = (sourceBaseId: string, url: string) => ({
  platform: "airtable",
  api_key: sandbox.key,
  base_id: sourceBaseId,
  destination: { kind: "external", url },
});

async function connect(name: string, port: number | string) {
  const sourceBaseId = await sandbox.generate({ records: 20, name, links: 0 });
  turncoat.behave(turning(upstream, Number.POSITIVE_INFINITY));
  const url = `postgres://customer:secret@127.0.0.1:${port}/${name}`;
  const answer = await api("POST", "bases", connectBody(sourceBaseId, url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${await answer.text()}`);
  const { id } = (await answer.json()) as { id: string };
  const isActive = async () =>
    ((await (await api("GET", `bases/${id}`)).json()) as { state: string }).state === "active";
  await until(isActive, { what: `${name} is synced`, timeoutMs: 60_000 });
  const list = `${at("proxy")}/api.airtable.com/v0/${sourceBaseId}/Projects`;
  const headers = { authorization: `Bearer ${sandbox.key}`, "content-type": "application/json" };
  const { records } = (await (await fetch(list, { headers })).json()) as { records: { id: string }[] };
  return {
    id,
    /** @returns whether SQL shows it at once */
    async write(text: string): Promise<boolean> {
      const body = JSON.stringify({ fields: { Name: text } });
      const signal = AbortSignal.timeout(WRITE_MS);
      const answer = await fetch(`${list}/${records[0]!.id}`, { method: "PATCH", headers, body, signal });
      await answer.text();
      return answer.ok && answer.headers.get("x-basetide-sql") !== "pending";
    },
  };
}
const honest = await connect("honest", databasePort);
const turned = await connect("turncoat", turncoat.port);
const spare = await sandbox.generate({ records: 1, name: "spare", links: 0 });

const watcher = new Worker(new URL("../support/health-watch.ts", import.meta.url).href);
releases.defer(() => watcher.terminate());
watcher.postMessage({ watch: { console: at("console"), worker: at("worker"), proxy: at("proxy") } });
watcher.onmessage = ({ data }) => console.log("slow:", JSON.stringify(data), attacker.recent.join(" "));
const peaks: Record<string, number> = {};
const peak = (name: string, pid: number | undefined) => {
  try {
    if (pid) peaks[name] = Math.max(peaks[name] ?? 0, residentBytes(pid));
  } catch {
    // It has just ended.
  }
};
const childrenOf = (pid: number) =>
  Bun.spawnSync(["pgrep", "-P", String(pid)])
    .stdout.toString()
    .trim()
    .split("\n")
    .filter(Boolean)
    .map(Number);

const end = performance.now() + minutes * 60_000;
const names = [...Object.keys(BEHAVIORS), ...Array<string>(20).fill("random")];
const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
const counts = { connects: 0, statuses: new Map<number, number>(), honest: 0, honestShown: 0, turned: 0 };

async function repeat(work: () => Promise<void>): Promise<void> {
  while (performance.now() < end) {
    await work().catch((error: unknown) => console.log("note:", String(error)));
    await Bun.sleep(20);
  }
}

/** Each by a different user: the circuit breaker would block a user's second connection. */
async function newConnection(): Promise<void> {
  attacker.behave(random() < 0.3 ? turning(upstream, Math.floor(random() * 60)) : pick(names));
  const port = random() < 0.05 ? "1" : String(attacker.port);
  const host = random() < 0.05 ? "[::1]" : "127.0.0.1";
  const url = `postgres://customer:secret@${host}:${port}/turncoat?options=-c%20geqo_seed%3D0.${counts.connects}`;
  const odd = `postgres://u${counts.connects}:p@${host}:${port}/db`;
  const answer = await api("POST", "bases", connectBody(spare, random() < 0.2 ? url : odd));
  counts.connects += 1;
  counts.statuses.set(answer.status, (counts.statuses.get(answer.status) ?? 0) + 1);
  const { id } = (await answer.json()) as { id?: string };
  if (answer.ok && id) await api("DELETE", `bases/${id}`);
}

await Promise.all([
  repeat(newConnection),
  repeat(newConnection),
  repeat(async () => {
    const dice = random();
    const behavior =
      dice < 0.4 ? turning(upstream, Math.floor(random() * 40)) : dice < 0.9 ? pick(names) : undefined;
    turncoat.behave(behavior ?? turning(upstream, Number.POSITIVE_INFINITY));
    turncoat.cut();
    await api("POST", `bases/${turned.id}/sync`);
    await Bun.sleep(TURN_MS);
  }),
  repeat(async () => {
    await turned.write(`turned ${counts.turned++}`);
    await Bun.sleep(300);
  }),
  repeat(async () => {
    counts.honest += 1;
    if (await honest.write(`honest ${counts.honest}`)) counts.honestShown += 1;
    await Bun.sleep(400);
  }),
  repeat(async () => {
    for (const [role, { pid }] of programs) {
      peak(role, pid);
      for (const child of childrenOf(pid)) peak(`gateway of ${role}`, child);
    }
    await Bun.sleep(500);
  }),
]);

// Finally: a base with a hostile server can be deleted, and a console starts that finds it half deleted.
turncoat.behave("endless-name");
turncoat.cut();
await api("DELETE", `bases/${turned.id}`).catch(() => undefined);

const metrics = await Promise.all(
  Object.keys(ports).map(
    async (role) => [role, await (await fetch(`${at(role as "console")}/metrics`)).text()] as const,
  ),
);
const freezes = await new Promise<Freezes>((resolve) => {
  watcher.onmessage = ({ data }) => "longest" in data && resolve(data as Freezes);
  watcher.postMessage({ take: true });
});
const total = (text: string, name: string) =>
  [...text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)`, "gm"))].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
const availability = counts.honestShown / Math.max(1, counts.honest);
const shown = new Map<string, number>();
for (const one of [turncoat, attacker])
  for (const [name, count] of one.shown) shown.set(name, (shown.get(name) ?? 0) + count);

console.log(`\nconnections to hostile servers  ${turncoat.connections + attacker.connections}`);
console.log(
  `behaviors shown                 ${[...shown].map(([name, count]) => `${name} ${count}`).join(", ")}`,
);
console.log(
  `bases asked for, by answer      ${[...counts.statuses].map(([status, count]) => `${status}: ${count}`).join(", ")}`,
);
console.log(`writes to the base that turned  ${counts.turned}`);
console.log(
  `writes to the honest base       ${counts.honest}, shown at once: ${(availability * 100).toFixed(2)} %`,
);
console.log(`/healthz asked                  ${freezes.asked} times`);
for (const [role, text] of metrics) {
  const restarts = total(text, "basetide_gateway_restarts_total");
  const violations = total(text, "basetide_gateway_violations_total");
  const size = (name: string) => `${Math.round((peaks[name] ?? 0) / 1e6)} MB`;
  console.log(
    `${role.padEnd(10)} longest freeze ${Math.round(freezes.longest[role] ?? 0)} ms, peak ${size(role)} (gateway ${size(`gateway of ${role}`)}), violations ${violations}, gateway restarts ${restarts}`,
  );
}
console.log(`deaths of our processes         ${deaths.length}`);
for (const death of deaths) console.log(death);
const isWrong =
  deaths.length > 0 ||
  Object.values(freezes.longest).some((ms) => ms > MAX_FREEZE_MS) ||
  Object.values(peaks).some((bytes) => bytes > MAX_RSS_BYTES) ||
  availability < MIN_AVAILABILITY;
console.log(isWrong ? "WRONG" : "ok");
process.exitCode = isWrong ? 1 : 0;
