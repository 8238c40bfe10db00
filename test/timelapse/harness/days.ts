/** Lets days pass: jumps, edits and writes between them, and what must happen at certain ages and dates. */
import { Random } from "../../../apps/sandbox/random";
import { until } from "../../support/poll";
import { LapseAgent } from "./agent";
import { LapseBase, type Mode } from "./base";
import { Clock } from "./clock";
import { daysAfter, report, type Sample, sample, violations } from "./growth";
import { EMAIL, PASSWORD, type Service, startService } from "./service";
import { LapseWriter, WRITTEN } from "./sql-writer";

const MODES: Mode[] = ["sweep", "rapid", "live", "resting", "capped"];
/** Until a base shows what has changed while it was suspended, ms. */
const EQUAL_MS = 120_000;
/** The first step of a day ends before the minute of housekeeping. */
const FIRST = { hour: 8, minute: 16, second: 20 };
/** Just after that minute, and when workers have looked for jobs again, s after the first step. */
const HOUSEKEEPING_SECONDS = 43;
const POLLED_SECONDS = 31;
/** Steps in which the rest of that minute passes. */
const LOOK_SECONDS = 5;
const MOST_LOOKS = 9;
const HOUR_MS = 3600_000;
const CALLS_PER_MONTH = 20_000;
/** A worker is killed, and restarts, every so many days. */
const KILL_EVERY = 10;
const RENAME_EVERY = 4;
/** A proposal that nobody decides about is left every so many days; it expires after one, and jumps are of a day. */
const PROPOSE_EVERY = 2;
const EXPIRED = 2;
/** Aliases, invitations and webhooks live for seven days; then the hour of housekeeping. */
const WEEK = 8;
/** Requests that are on their way in the moment of a jump arrive in another second than the one in which they were sent. */
const ON_THEIR_WAY = 2;

interface Options {
  from: Date;
  days: number;
  steps: number;
}

interface Run {
  service: Service;
  bases: LapseBase[];
  writers: LapseWriter[];
  agent: LapseAgent;
  random: Random;
  found: string[];
  /** What must hold on a day, by day. */
  due: Map<number, (() => Promise<unknown>)[]>;
  /** The base within a budget cannot be current until the next month. */
  isSpent: boolean;
}

/** @returns the number of violations */
export async function runDays({ from, days, steps }: Options): Promise<number> {
  const seed = Number(process.env.TIMELAPSE_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0]);
  console.log(`${days} days from ${from.toISOString()}, ${steps} steps a day, TIMELAPSE_SEED=${seed}`);
  const clock = new Clock();
  await using service = await startService(process.env.TIMELAPSE_LOG);
  // In Bun's types, only the event emitter that `process` extends knows signals.
  const signals: NodeJS.EventEmitter = process;
  for (const name of ["SIGINT", "SIGTERM"])
    signals.once(name, () => void service[Symbol.asyncDispose]().then(() => process.exit(130)));
  const workspace = await service.manage<{ id: string }>("POST", "workspaces", {
    name: "Capped",
    plan: "custom",
    calls_per_month: CALLS_PER_MONTH,
    reserve: 0,
  });
  const bases = await Promise.all(MODES.map((mode) => LapseBase.connect(service, mode, workspace.id)));
  const written = bases.filter(({ mode }) => WRITTEN[mode]);
  const writers = await Promise.all(written.map((base) => LapseWriter.create(service, base)));
  const agent = await LapseAgent.create(service, bases.find(({ mode }) => mode === "live")!);
  const run: Run = {
    service,
    bases,
    writers,
    agent,
    random: new Random(seed),
    found: [],
    due: new Map(),
    isSpent: false,
  };
  await signIn(run);
  const samples: Sample[] = [];
  for (let day = 0; day < days; day++) {
    const began = clock.realMs;
    for (let step = 0; step < steps; step++) {
      const hours = FIRST.hour + (step * 24) / steps;
      const at = new Date(daysAfter(from, day).getTime() + hours * HOUR_MS);
      at.setUTCMinutes(FIRST.minute, FIRST.second);
      clock.jumpTo(at);
      await attempt(run, () => live(run));
      if (step === 0) await attempt(run, () => housekeeping(run, clock, at));
    }
    await attempt(run, () => dayOf(run, day, daysAfter(from, day)));
    for (const check of run.due.get(day) ?? []) await attempt(run, check);
    samples.push(await sample(service, bases, day));
    collect(run);
    console.log(
      `day ${day}, ${daysAfter(from, day).toISOString().slice(0, 10)}: ${((clock.realMs - began) / 1000).toFixed(1)} s`,
    );
  }
  // The base within a budget is read a few times an hour.
  clock.jumpTo(new Date(Date.now() + HOUR_MS));
  await attempt(run, () => inTheEnd(run, days));
  run.found.push(...(await violations(service, samples, days)));
  for (const one of [...bases, ...writers]) await one.close();
  collect(run);
  console.log(`\n${report(samples, bases.length)}\n`);
  for (const base of bases)
    console.log(
      `${base.mode}: ${base.cells} cells compared, ${base.looks} reads, ${base.writes} writes (${base.pending} pending, ${base.retried} sent again)`,
    );
  for (const { base, way, writes, pending, retried } of writers)
    console.log(`${base.mode}: ${writes} SQL writes ${way} (${pending} pending, ${retried} made again)`);
  console.log(`an agent: ${agent.approved} updates by a rule (${agent.retried} calls made again)`);
  console.log(`requests: ${JSON.stringify((await service.sandbox.logSummary()).byStatus)}`);
  for (const one of run.found) console.log(`WRONG: ${one}`);
  console.log(run.found.length === 0 ? "nothing went wrong" : `${run.found.length} things went wrong`);
  return run.found.length;
}

/** Everything that was changed is in SQL; then people and clients change more. */
async function live({ service, bases, writers, agent, random, isSpent, found }: Run): Promise<void> {
  const current = bases.filter(({ mode }) => mode !== "capped" || !isSpent);
  await Promise.all(current.map((base) => base.equal(EQUAL_MS)));
  const edited = current.filter(({ mode }) => mode !== "resting");
  await Promise.all(edited.map((base) => base.edit(random)));
  await Promise.all(edited.map((base) => base.write(random)));
  await Promise.all(writers.map((writer) => writer.write(random)));
  await agent.base.equal(EQUAL_MS);
  await agent.work(random);
  await Promise.all(edited.filter(({ mode }) => mode !== "capped").map((base) => base.equal(EQUAL_MS)));
  const holders = await service.control<{ bases: number; jobs: number }[]>`
    select count(distinct singleton_key)::int as bases, count(*)::int as jobs from pgboss.job
    where name = 'sync' and state = 'active'`;
  if (holders[0]!.bases !== holders[0]!.jobs) found.push(`I5: ${JSON.stringify(holders)} jobs are held`);
}

/** Lets pg-boss's schedule start housekeeping, and a worker do it. */
async function housekeeping({ service }: Run, clock: Clock, after: Date): Promise<void> {
  const jobs = async (state: string) => {
    const rows = await service.control`
      select from pgboss.job where name = 'housekeeping' and state = ${state} and created_on > ${after}`;
    return rows.length > 0;
  };
  clock.jumpTo(new Date(after.getTime() + HOUSEKEEPING_SECONDS * 1000));
  let looks = 0;
  const isDue = async () => {
    if ((await jobs("created")) || (await jobs("completed"))) return true;
    // pg-boss looks about twice a minute.
    if (looks++ < MOST_LOOKS) clock.advance(LOOK_SECONDS * 1000);
    return false;
  };
  await until(isDue, { what: "housekeeping is due", timeoutMs: EQUAL_MS, intervalMs: 500 });
  clock.advance(POLLED_SECONDS * 1000);
  await until(() => jobs("completed"), { what: "housekeeping is done", timeoutMs: EQUAL_MS });
}

/** What people do on some days, and what must have come of it later. */
async function dayOf(run: Run, day: number, date: Date): Promise<void> {
  const { service, bases, random } = run;
  const later = (after: number, check: () => Promise<unknown>) =>
    run.due.set(day + after, [...(run.due.get(day + after) ?? []), check]);
  if (day % RENAME_EVERY === 0)
    for (const base of bases.filter(({ mode }) => mode === "sweep" || mode === "live")) {
      const old = await base.rename(day);
      await base.equal(EQUAL_MS);
      if (!(await base.answers(old))) run.found.push(`${base.mode}: ${old} does not answer after a rename`);
      later(WEEK, async () => {
        if (await base.answers(old)) run.found.push(`${base.mode}: ${old} answers after ${WEEK} days`);
      });
    }
  if (day % RENAME_EVERY === 0) await invite(run, day, later);
  if (day % PROPOSE_EVERY === 0) {
    const stateOf = await run.agent.leaveOpen();
    if ((await stateOf()) !== "proposed") run.found.push(`day ${day}: a proposal does not wait`);
    later(EXPIRED, async () => {
      const state = await stateOf();
      if (state !== "expired") run.found.push(`a proposal of day ${day} is ${state} after ${EXPIRED} days`);
    });
  }
  if (day % KILL_EVERY === KILL_EVERY / 2) {
    await service.worker.kill();
    await until(() => service.worker.isReady(), { what: "the worker is back", timeoutMs: 60_000 });
  }
  // The budget is spent, and a new month begins.
  const capped = bases.find(({ mode }) => mode === "capped")!;
  if (new Date(date.getTime() + 2 * 24 * 3600_000).getUTCDate() === 1) {
    await service.control`
      update quota_calls set sync = ${CALLS_PER_MONTH} where key = ${`airtable:${capped.sourceId}`}
        and month = date_trunc('month', now() at time zone 'UTC')::date`;
    run.isSpent = true;
  }
  if (date.getUTCDate() === 1 && run.isSpent) {
    run.isSpent = false;
    await capped.equal(EQUAL_MS);
  }
  await links(run, random);
}

/** An invitation and a token, which expire. */
async function invite(run: Run, day: number, later: (after: number, check: () => Promise<unknown>) => void) {
  const { service, found } = run;
  const email = `guest${day}@example.org`;
  const answer = await post(run, "/account/members", { email, role: "viewer" });
  if (answer.status >= 400) {
    await signIn(run);
    await post(run, "/account/members", { email, role: "viewer" });
  }
  const invitations = () =>
    service.control`select from invitations where email = ${email}`.then((rows) => rows.length);
  if ((await invitations()) !== 1) found.push(`day ${day}: no invitation was made`);
  later(WEEK, async () => {
    if ((await invitations()) > 0) found.push(`an invitation of day ${day} exists after ${WEEK} days`);
  });
  const { createToken } = await import("../../../core/control/accounts");
  const token = await createToken(service.control, service.accountId, `day ${day}`, { expiresInDays: 1 });
  if ((await service.statusFor(token)) !== 200) found.push(`day ${day}: a new token is refused`);
  later(2, async () => {
    if ((await service.statusFor(token)) !== 401) found.push(`a token of day ${day} works after two days`);
  });
}

/** The links to attachments that SQL shows lead to files. */
async function links(run: Run, random: Random): Promise<void> {
  const base = run.bases.find(({ mode }) => mode === "live")!;
  const rows = await base.reader<
    { url: string }[]
  >`select files[1] as url from items where cardinality(files) > 0`.simple();
  if (rows.length === 0) return;
  const { url } = random.pick(rows);
  const answer = await fetch(url, { redirect: "manual" });
  if (answer.status !== 302) run.found.push(`an attachment's link is answered ${answer.status}`);
}

async function signIn(run: Run): Promise<void> {
  const answer = await post(run, "/sign-in", { email: EMAIL, password: PASSWORD });
  if (answer.status !== 303 && answer.status !== 302)
    throw new Error(`Signing in is answered ${answer.status}`);
}

function post({ service }: Run, path: string, form: Record<string, string>) {
  return service.browser.post(path, form, { origin: service.consoleUrl, "sec-fetch-site": "same-origin" });
}

/** Nothing needs a person, and nothing counts as a crash. */
async function inTheEnd({ service, bases, writers, found }: Run, days: number): Promise<void> {
  await Promise.all(bases.map((base) => base.equal(EQUAL_MS)));
  for (const writer of writers) found.push(...(await writer.unfinished(service)));
  // Green, or yellow for a budget.
  type State = { state: string; indicator: { color: string; reason: string } };
  let states: State[] = [];
  const isWell = async () => {
    states = await service.manage<State[]>("GET", "bases");
    return states.every(({ state, indicator }) => state === "active" && indicator.color !== "red");
  };
  await until(isWell, { what: "all bases are well", timeoutMs: EQUAL_MS, retryErrors: true }).catch(() =>
    found.push(
      `bases are not well: ${JSON.stringify(states.map(({ state, indicator }) => ({ state, ...indicator })))}`,
    ),
  );
  // Workers were killed on purpose: that counts, but makes no suspect.
  const suspects = await service.control`
    select base_id, crashes from base_crashes where suspected_at is not null or crashes > ${Math.ceil(days / KILL_EVERY)}`;
  if (suspects.length > 0) found.push(`suspects: ${JSON.stringify(suspects)}`);
  const repairs =
    await service.control`select from repairs where recorded_at < now() - interval '10 minutes'`;
  if (repairs.length > 0) found.push(`${repairs.length} repairs are left`);
  const alerts = await service.control<{ kind: string; count: number }[]>`
    select kind, count(*)::int as count from alerts where kind = 'needs_attention' group by 1`;
  if (alerts.length > 0) found.push(`alerts: ${JSON.stringify(alerts)}`);
  const errors = await service.control`
    select error_code as code, count(*)::int as runs from sync_runs where error_code is not null group by 1`;
  console.log(`failed runs of the last 30 days: ${JSON.stringify([...errors])}`);
  const summary = await service.sandbox.logSummary();
  const most = Math.max(...Object.values(summary.bases).map(({ maxPerSecond }) => maxPerSecond));
  if (most > 5 + ON_THEIR_WAY) found.push(`I4: ${most} requests for one base within a second`);
  const refused = summary.byStatus[429] ?? 0;
  if (refused > ON_THEIR_WAY) found.push(`I4: Airtable refused ${refused} requests`);
}

function collect({ service, bases, writers, found }: Run): void {
  const seen = [...bases, ...writers].map(({ violations: list }) => list);
  for (const list of [...seen, ...service.processes.map((one) => one.faults)]) found.push(...list.splice(0));
}

/** A check that fails is a violation, and the run goes on. */
async function attempt({ found }: Run, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const said = `${new Date().toISOString()} ${(error as Error).message}`;
    console.log(`      WRONG: ${said}`);
    found.push(said);
  }
}
