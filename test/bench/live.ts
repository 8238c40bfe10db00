/**
 * Measures live mode: how soon a create, an update, a delete and a dependent lookup is in SQL, in bases of 1,000,
 * 100,000 and 300,000 records; and how long 20,000 changes at once take, compared with a sweep of an equal table in the
 * same run.
 *
 * The source answers over a network (`network.ts`), sends notifications at once, and does not report computed cells.
 * Users edit a base about every two seconds. Bases are first filled without a rate limit. Run: `bun run bench live`,
 * about six minutes. `--clients` and `--floor` run other measurements: live-clients.ts, live-floor.ts.
 */
import type postgres from "postgres";
import { startWorker } from "../../apps/worker/start";
import { type Base, getBase, updateSettings } from "../../core/control/bases";
import { cadenceOf } from "../../core/sync/pacing";
import { simulateDay, simulateMonth } from "../support/budget-simulation";
import { type Fleet, startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { until } from "../support/poll";
import { startProgram } from "../support/program";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { unlimitedLimiter } from "../support/unlimited-limiter";
import { runWithClients } from "./live-clients";
import { runWithFloor } from "./live-floor";
import { networkOption, WORK_MS } from "./network";
import { table as printTable, ratio } from "./print";

const SIZES = [1000, 100_000, 300_000];
const BULK = 20_000;
const MEASURED_MS = 180_000;
/** The mean time between two edits of one base. */
const EDIT_EVERY_MS = 2000;
const POLL_MS = 10;
const LIMITS = { p50: 700, p99: 1500, lookupP99: 3000, bulk: 1.2 };
const TIMEOUT_MS = 300_000;
const TEAM_CALLS = 100_000;

/** A base in live mode: `linking` has links to `edited`, and looks its names up. */
interface Subject {
  size: number;
  base: Base;
  reader: postgres.Sql;
  edited: { id: string; sqlName: string; ids: string[] };
  linking: { sqlName: string };
}

/** An edit that is not in SQL yet. */
interface Pending {
  /** A row with one column, `done`. */
  query: string;
  kind: Kind;
  madeAt: number;
}

type Kind = "create" | "update" | "delete" | "lookup";
type Times = Record<Kind, number[]>;

export async function run(): Promise<boolean> {
  if (process.argv.includes("--clients")) return runWithClients();
  if (process.argv.includes("--floor")) return runWithFloor();
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess(networkOption()));
  await source.settings({ rateLimitOff: true, webhooks: { computedCells: "not emitted" } });
  const consolePort = await freePort();
  const env = { CONSOLE_PORT: String(consolePort), CONSOLE_URL: `http://127.0.0.1:${consolePort}` };
  const fleet = releases.use(await startFleet({ source, databaseUrl: server.url, workers: 0, env }));
  const sizes = [...SIZES.map((records) => ({ records, tables: 2 })), { records: BULK }, { records: BULK }];
  const sources: string[] = [];
  for (const [seed, size] of sizes.entries()) sources.push(await source.generate({ ...size, seed }));
  const filled = await fill(fleet, sources);
  const swept = filled.pop()!;
  const bulk = filled.pop()!;
  await updateSettings(fleet.ctx, swept, { live: false });
  await source.settings({ ...WORK_MS, rateLimitOff: false });
  await source.call("DELETE", "log");
  const program = (script: string) => releases.use(startProgram(script, [], programEnv(fleet, env)));
  // In their own processes, so that they never wait for the measuring code.
  const [consoles, worker] = [program("apps/console/main.ts"), program("apps/worker/main.ts")];
  await Promise.all([consoles.says("started"), worker.says("started")]);
  const subjects = await Promise.all(filled.map((base, index) => subject(fleet, base, SIZES[index]!)));
  const sweepMs = await sweepTime(fleet, swept);
  const [times, bulkMs] = await Promise.all([
    Promise.all(subjects.map((one) => editing(one, source))),
    bulkTime(fleet, bulk, source),
  ]);
  const rows = subjects.flatMap(({ size }, index) => rowsOf(size, times[index]!));
  rows.push({
    what: `${BULK} records changed at once, against a sweep (${Math.round(sweepMs)} ms)`,
    ms: bulkMs,
    limitMs: LIMITS.bulk * sweepMs,
  });
  const calls = callRows();
  printTable(
    ["simulated clock", "calls", "limit"],
    calls.map((row) => [row.what, row.calls, row.limit]),
  );
  console.log();
  const measured = rows.map((row) => ({ ...row, ratio: ratio(row.ms / row.limitMs, 1) }));
  printTable(
    ["", "measured", "limit", "of the limit"],
    measured.map((row) => [
      row.what,
      `${Math.round(row.ms)} ms`,
      `${Math.round(row.limitMs)} ms`,
      row.ratio.text,
    ]),
  );
  const log = await source.logSummary();
  const most = Math.max(...sources.map((id) => log.bases[id]!.maxPerSecond));
  console.log(`\nanswers of 429: ${log.rateLimited}; most requests of a base in any second: ${most}`);
  const isInBudget = calls.every((row) => row.calls <= row.limit);
  return isInBudget && measured.every((row) => row.ratio.isWithin) && log.rateLimited === 0;
}

function programEnv({ ctx: { config }, sandbox }: Fleet<SandboxProcess>, env: Record<string, string>) {
  return {
    ...env,
    DATABASE_URL: config.databaseUrl!,
    SECRET_KEY: config.secretKey!,
    ...sandbox.clientEnv,
    WORKER_PORT: "0",
    LOG_LEVEL: "info",
  };
}

/** Connects the bases and syncs each once, with a worker without a rate limit. */
async function fill(fleet: Fleet<SandboxProcess>, sources: string[]): Promise<Base[]> {
  const worker = await startWorker(fleet.ctx, { port: 0, limiter: unlimitedLimiter() });
  try {
    const made = await Promise.all(sources.map((id) => fleet.connect(id, { live: true })));
    const first = async ({ id }: Base) => {
      const base = await getBase(fleet.ctx.db, id);
      return base.sync && base;
    };
    const waits = { what: "a first sync", timeoutMs: TIMEOUT_MS, intervalMs: 200 };
    return await Promise.all(made.map((base) => until(() => first(base), waits)));
  } finally {
    await worker.stop();
  }
}

/** Waits until the base's feed is read, and finds the table that the other one looks names up in. */
async function subject(fleet: Fleet<SandboxProcess>, { id }: Base, size: number): Promise<Subject> {
  const isLive = async () => {
    const base = await getBase(fleet.ctx.db, id);
    return base.live?.state === "on" && base;
  };
  const base = await until(isLive, { what: `${size} records: live`, timeoutMs: TIMEOUT_MS, intervalMs: 200 });
  const reader = await fleet.reader(base);
  const [linking, edited] = base.tables;
  // Records that others link to, so that a lookup changes.
  const rows = await reader<{ id: string }[]>`
    select distinct unnest(related) as id from (select related from ${reader(linking!.name)} limit 2000) as t`;
  return {
    size,
    base,
    reader,
    edited: { id: edited!.source_id!, sqlName: edited!.name, ids: rows.map((row) => row.id) },
    linking: { sqlName: linking!.name },
  };
}

/** Edits at random moments and waits until all edits are visible. Returns the delays by kind, sorted, ms. */
async function editing({ base, reader, edited, linking }: Subject, source: SandboxProcess): Promise<Times> {
  const times: Times = { create: [], update: [], delete: [], lookup: [] };
  const pending = new Set<Pending>();
  const path = `bases/${base.sourceBaseId}/tables/${edited.id}/records`;
  const ids = [...edited.ids];
  const wait = (kind: Kind, query: string) => pending.add({ kind, query, madeAt: performance.now() });
  const row = (id: string, where = "true") =>
    `exists (select from "${edited.sqlName}" where id = '${id}' and ${where}) as done`;
  const edit = async (turn: number) => {
    const value = `edit ${turn}`;
    if (turn % 4 === 0) {
      const answer = await source.call("POST", path, { records: [{ fields: { Name: value } }] });
      wait("create", row((answer as { ids: string[] }).ids[0]!));
    } else if (turn % 4 === 1) {
      const id = ids.pop()!;
      await source.call("DELETE", path, { ids: [id] });
      wait("delete", `not ${row(id)}`);
    } else {
      const id = ids.pop()!;
      const [other] = await reader<{ id: string }[]>`
        select id from ${reader(linking.sqlName)} where related @> array[${id}] limit 1`;
      await source.call("PATCH", path, { records: [{ id, fields: { Name: value } }] });
      wait("update", row(id, `name = '${value}'`));
      wait(
        "lookup",
        `exists (select from "${linking.sqlName}" where id = '${other!.id}' and '${value}' = any (related_names)) as done`,
      );
    }
  };
  let isOver = false;
  const watching = (async () => {
    while (!isOver || pending.size > 0) {
      const asked = [...pending];
      const done = asked.length === 0 ? [] : await reader.unsafe<{ done: boolean }[]>(queryOf(asked));
      for (const [index, { done: isDone }] of done.entries()) {
        const one = asked[index]!;
        if (isDone && pending.delete(one)) times[one.kind].push(performance.now() - one.madeAt);
      }
      await Bun.sleep(POLL_MS);
    }
  })();
  const over = performance.now() + MEASURED_MS;
  for (let turn = 0; performance.now() < over; turn++) {
    await edit(turn);
    await Bun.sleep((0.5 + Math.random()) * EDIT_EVERY_MS);
  }
  isOver = true;
  await watching;
  return times;
}

function queryOf(pending: Pending[]): string {
  return `${pending.map(({ query }, index) => `select ${index} as at, ${query}`).join(" union all ")} order by at`;
}

/** Changes every record of the base's table at once. Returns the time until SQL has them all, ms. */
async function bulkTime(fleet: Fleet<SandboxProcess>, { id }: Base, source: SandboxProcess): Promise<number> {
  const base = await getBase(fleet.ctx.db, id);
  const reader = await fleet.reader(base);
  const [{ name, source_id }] = base.tables as [Base["tables"][number]];
  const rows = await reader<{ id: string }[]>`select id from ${reader(name)}`;
  const records = rows.map((row) => ({ id: row.id, fields: { Name: "changed at once" } }));
  await source.call("PATCH", `bases/${base.sourceBaseId}/tables/${source_id}/records`, { records });
  const madeAt = performance.now();
  const isRight = async () => {
    const [row] = await reader`
      select count(*) = ${BULK} and bool_and(name = 'changed at once') as right from ${reader(name)}`;
    return row!.right as boolean;
  };
  await until(isRight, { what: "all changed records are in SQL", timeoutMs: TIMEOUT_MS, intervalMs: 100 });
  return performance.now() - madeAt;
}

/** The duration of a sweep of this base, ms: of the first that begins after the call. */
async function sweepTime(fleet: Fleet<SandboxProcess>, { id }: Base): Promise<number> {
  const from = new Date();
  const swept = async () => {
    const { sync } = await getBase(fleet.ctx.db, id);
    return sync?.kind === "sweep" && sync.startedAt > from && sync.durationMs;
  };
  return until(swept, { what: "a sweep", timeoutMs: TIMEOUT_MS, intervalMs: 200 });
}

/** The calls of an idle base in a day, and of a polled one in a month of a Team plan. */
function callRows(): { what: string; calls: number; limit: number }[] {
  const sweepCalls = 50;
  const idle = {
    mode: "live",
    ratePerSecond: Infinity,
    isActive: false,
    quietMs: Number.POSITIVE_INFINITY,
    tables: 5,
    changesByItself: false,
  } as const;
  const polled = {
    mode: "live",
    notifications: "none",
    tables: 10,
    sweepCalls: 300,
    activePart: 0.3,
  } as const;
  const month = simulateMonth({
    month: "2026-10",
    callsPerMonth: TEAM_CALLS,
    reservePart: 0.2,
    bases: [{ ...polled, batchCalls: 3, bursts: 0, burstCalls: 1 }],
    clientPart: 1,
    seed: 1,
  });
  return [
    {
      what: "idle live base of 5,000 records with pings, a day, and its daily sweep",
      calls: simulateDay(cadenceOf({ ...idle, notifications: "proven", sweepCalls }), sweepCalls),
      limit: 300 + sweepCalls,
    },
    {
      what: "polled live base of 30,000 records, Team plan, its clients using all of their reserve, a month",
      calls: month.sync + month.client,
      limit: TEAM_CALLS,
    },
  ];
}

function rowsOf(size: number, times: Times) {
  const direct = [...times.create, ...times.update, ...times.delete].sort((a, b) => a - b);
  const lookups = times.lookup.toSorted((a, b) => a - b);
  const at = (sorted: number[], share: number) => sorted[Math.ceil(sorted.length * share) - 1]!;
  const of = `${size.toLocaleString("en")} records`;
  return [
    { what: `${of}: p50 of ${direct.length} edits`, ms: at(direct, 0.5), limitMs: LIMITS.p50 },
    { what: `${of}: p99`, ms: at(direct, 0.99), limitMs: LIMITS.p99 },
    { what: `${of}: p99 of ${lookups.length} lookups`, ms: at(lookups, 0.99), limitMs: LIMITS.lookupP99 },
  ];
}
