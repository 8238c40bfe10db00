/**
 * The canary in its own process, so that it shares no event loop with an attacker: it repeats a customer's calls at a
 * fixed rate, whatever happens to earlier ones, and checks every process's health.
 *
 * Configured by CANARY; sends its measurements on request.
 */
import postgres from "postgres";
import type { CanaryPlan, Kind, Measured } from "./canary";

/** The longest wait for a call; one that takes longer has failed, ms. */
const TIMEOUT_MS = 10_000;
const TICK_MS = 50;
const HEALTH_EVERY_MS = 100;
const LAG_EVERY_MS = 10;
/** More of them add no information. */
const MAX_FAILURES = 20;

const plan = JSON.parse(process.env.CANARY!) as CanaryPlan;
const readers = plan.bases.map(({ url }) =>
  postgres(url, { max: 2, onnotice: () => {}, fetch_types: false }),
);
let measured = nothing();
/** The calls that count in the current window. */
let underWay = new Set<Promise<void>>();

function nothing(): Measured {
  return {
    samples: { write: [], read: [], sql: [], console: [] },
    failures: [],
    failed: 0,
    made: 0,
    calls: 0,
    freezes: {},
  };
}

/** The recent stalls of this process and their durations, which are not the service's fault. */
let lags: { at: number; ms: number }[] = [];
let lastTick = performance.now();
setInterval(() => {
  const now = performance.now();
  const ms = now - lastTick - LAG_EVERY_MS;
  if (ms > 5) lags.push({ at: now, ms });
  lastTick = now;
  if (lags.length > 2000) lags = lags.slice(-1000);
}, LAG_EVERY_MS);
const lateSince = (from: number) => lags.filter(({ at }) => at >= from).reduce((sum, { ms }) => sum + ms, 0);

async function measure(kind: Kind, work: () => Promise<string | undefined>): Promise<void> {
  const into = measured;
  const over = Promise.withResolvers<void>();
  const running = underWay;
  running.add(over.promise);
  const from = performance.now();
  const [setUps, isSettingUp] = [setUpsSoFar, setUpsUnderWay > 0];
  let wrong: string | undefined;
  try {
    wrong = await work();
  } catch (error) {
    wrong = error instanceof Error ? `${error.name} ${error.message}` : String(error);
  }
  const ms = Math.max(0, performance.now() - from - lateSince(from));
  if (!isSettingUp && setUps === setUpsSoFar) into.samples[kind].push(ms);
  into.made++;
  if (wrong !== undefined) {
    into.failed++;
    if (into.failures.length < MAX_FAILURES) into.failures.push(`${kind}: ${wrong}`);
  }
  running.delete(over.promise);
  over.resolve();
}

let count = 0;
let isPaused = false;
/** Normal actions of any account that load the machine, such as connecting a base: these are not measured. */
let setUpsUnderWay = 0;
let setUpsSoFar = 0;

let proxied = 0;

/** The next base for a call through a proxy: all in turn, so that no call waits for the base's own limit. */
function nextBase(): number {
  return proxied++ % plan.bases.length;
}

function call(path: string, init: RequestInit = {}): Promise<Response> {
  measured.calls++;
  return fetch(`${plan.endpoints[count % plan.endpoints.length]}/${path}`, {
    ...init,
    headers: { authorization: `Bearer ${plan.key}`, "content-type": "application/json" },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
}

/** Writes through the proxy, and then reads it in SQL: at once, as the service promises. */
async function write(): Promise<string | undefined> {
  const at = nextBase();
  const base = plan.bases[at]!;
  const id = base.recordIds[count % base.recordIds.length]!;
  const name = `canary ${count}`;
  const answer = await call(`${base.sourceBaseId}/Tasks/${id}`, {
    method: "PATCH",
    body: JSON.stringify({ fields: { Name: name } }),
  });
  const text = await answer.text();
  if (answer.status !== 200) return `${answer.status} ${text.slice(0, 200)}`;
  if (answer.headers.get("x-basetide-sql") === "pending") return "answered before SQL has it";
  const [row] = await readers[at]!<{ name: string }[]>`select name from tasks where id = ${id}`;
  // A later write of the canary itself may have come in between.
  return row?.name.startsWith("canary ") ? undefined : `SQL shows ${row?.name}`;
}

async function read(): Promise<string | undefined> {
  const base = plan.bases[nextBase()]!;
  const answer = await call(`${base.sourceBaseId}/Tasks?maxRecords=3`);
  const text = await answer.text();
  if (answer.status !== 200) return `${answer.status} ${text.slice(0, 200)}`;
  return (JSON.parse(text) as { records: unknown[] }).records.length === 3 ? undefined : "other records";
}

async function query(): Promise<string | undefined> {
  const at = count % plan.bases.length;
  const rows = await readers[at]!<{ id: string }[]>`select id, name, amount from tasks order by name`;
  return rows.length === plan.bases[at]!.recordIds.length ? undefined : `${rows.length} rows`;
}

async function openConsole(): Promise<string | undefined> {
  const answer = await fetch(`${plan.consoleUrl}/bases`, {
    headers: { cookie: plan.cookie, accept: "text/html", "x-client": "198.51.100.7" },
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await answer.text();
  return answer.status === 200 && text.includes("Canary") ? undefined : `${answer.status}`;
}

/** In a second: six writes, six reads, twelve statements, six pages. */
const TURNS: (() => Promise<void>)[] = [
  () => measure("write", write),
  () => measure("sql", query),
  () => measure("read", read),
  () => measure("sql", query),
  () => measure("console", openConsole),
];
setInterval(() => {
  if (isPaused) return;
  count++;
  void TURNS[count % TURNS.length]!();
  if (count % 2 === 0) void TURNS[(count * 3 + 1) % TURNS.length]!();
}, TICK_MS);

for (const { name, port } of plan.processes) {
  let isAsking = false;
  setInterval(async () => {
    if (isAsking) return;
    isAsking = true;
    const from = performance.now();
    // Refused at once: the process is dead, which is counted elsewhere.
    await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
      () => {},
    );
    const ms = performance.now() - from - lateSince(from);
    measured.freezes[name] = Math.max(measured.freezes[name] ?? 0, ms);
    isAsking = false;
  }, HEALTH_EVERY_MS);
}

process.on("message", (message) => {
  if (message === "set-up begins") {
    setUpsUnderWay++;
    setUpsSoFar++;
    return;
  }
  if (message === "set-up ends") {
    setUpsUnderWay--;
    return;
  }
  isPaused = message === "pause";
  const [taken, running] = [measured, underWay];
  [measured, underWay] = [nothing(), new Set()];
  // The slowest call must not be left out.
  void Promise.all(running).then(() => process.send!(taken));
});
process.on("disconnect", () => process.exit(0));
process.send!("ready");
