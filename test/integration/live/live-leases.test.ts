/**
 * Leases of live bases. I7: a worker process is killed at every point between a payload and the cursor behind it.
 * Another one continues; nothing is lost, nothing is done twice, and no sweep helps. Meanwhile, another base is idle: what its
 * lease costs the server of its replica.
 */
import postgres from "postgres";
import { expect, inject, test } from "vitest";
import { type Base, getBase, listRuns } from "../../../core/control/bases";
import { loadFeed } from "../../../core/control/feeds";
import { TURN_MS } from "../../../core/sync/pacing";
import { controlDatabase } from "../../support/database";
import { expectEqualToSource } from "../../support/equal-to-source";
import type { WireTable } from "../../support/expected-cells";
import { type FaultProxy, faultProxy, type HoldPoint } from "../../support/fault-proxy";
import type { Fleet } from "../../support/fleet";
import { connectLive, readOut, startLiveFleet } from "../../support/live-fleet";
import { slowness } from "../../support/machine-speed";
import { until } from "../../support/poll";
import type { Program } from "../../support/program";
import { proveAddress } from "../../support/prove-address";
import { startWorkerProcess } from "../../support/worker-process";

const RECORDS = 300;
/** The longest that a worker takes to reach a point. */
const HOLD_MS = 30_000;
/** How a whole table is listed, as only sweeps do. */
const SWEEPS = 'listRecords .*"returnFieldsByFieldId":true(,"offset"|})';

interface Point {
  name: string;
  /** Which statement of the worker's, and on which of its connections. */
  line: "control" | "replica";
  statement: RegExp;
  /** The statement with this number. */
  nth: number;
  at: HoldPoint;
  /** Must the cursor still be where it was? */
  isBehind: boolean;
}

const ROWS = { line: "replica", statement: /apply_row_images/ } as const;
const CURSOR = { line: "control", statement: /update live_feeds set cursor/ } as const;
const POINTS: Point[] = [
  { name: "before any row", ...ROWS, nth: 1, at: "before", isBehind: true },
  { name: "not knowing that rows are written", ...ROWS, nth: 1, at: "after", isBehind: true },
  { name: "with some of the rows written", ...ROWS, nth: 2, at: "before", isBehind: true },
  { name: "before the cursor is saved", ...CURSOR, nth: 1, at: "before", isBehind: true },
  { name: "not knowing that the cursor is saved", ...CURSOR, nth: 1, at: "after", isBehind: false },
];

/** A live service whose workers are processes with watched connections. */
async function service(releases: AsyncDisposableStack) {
  const { url } = releases.use(await controlDatabase());
  const { hostname, port } = new URL(url);
  const line = async () =>
    releases.use(await faultProxy({ host: hostname, port: Number(port || 5432) }, { isPostgres: true }));
  const lines = { control: await line(), replica: await line() };
  const env = { REPLICA_URL: lines.replica.over(inject("clusterUrl")), UPSTREAM_TIMEOUT_MS: "120000" };
  const webhooks = { computedCells: "not emitted", recordsPerPayload: 4 } as const;
  const sandbox = { settings: { rateLimitOff: true, webhooks } };
  const fleet = releases.use(await startLiveFleet({ workers: 0, databaseUrl: url, sandbox, env }));
  const { consoleUrl } = fleet.ctx.config;
  return {
    fleet,
    lines,
    worker: () =>
      startWorkerProcess(fleet, {
        DATABASE_URL: lines.control.over(url),
        CONSOLE_URL: consoleUrl,
        UPSTREAM_TIMEOUT_MS: env.UPSTREAM_TIMEOUT_MS,
      }),
  };
}

/** Teams, and people with lookups of their names. */
function createTeams({ sandbox: { control } }: Fleet) {
  const sourceId = control.createBase({
    name: "Teams",
    tables: ["Teams", "People"].map((name) => ({ name, fields: [{ name: "Name", type: "singleLineText" }] })),
  });
  const tables = () => control.dump(sourceId).tables as unknown as WireTable[];
  const [teams, people] = tables().map(({ id }) => id) as [string, string];
  const options = { linkedTableId: teams };
  const link = control.addField(sourceId, people, { name: "Team", type: "multipleRecordLinks", options });
  const lookup = { recordLinkFieldId: link, fieldIdInLinkedTable: tables()[0]!.fields[0]!.id };
  control.addField(sourceId, people, { name: "Team name", type: "multipleLookupValues", options: lookup });
  const rows = (of: (index: number) => Record<string, unknown>) =>
    Array.from({ length: RECORDS }, (_, index) => ({ fields: of(index) }));
  const teamIds = control.createRecords(
    sourceId,
    teams,
    rows((index) => ({ Name: `T${index}` })),
  );
  const peopleIds = control.createRecords(
    sourceId,
    people,
    rows((index) => ({ Name: `P${index}`, Team: [teamIds[index]!] })),
  );
  /** Some of each kind of change. */
  const edit = (round: number) => {
    const of = (ids: string[], count: number) => ids.slice(round * 20, round * 20 + count);
    const renamed = (ids: string[]) => ids.map((id) => ({ id, fields: { Name: `round ${round} ${id}` } }));
    control.updateRecords(sourceId, teams, renamed(of(teamIds, 10)));
    control.updateRecords(sourceId, people, renamed(of(peopleIds, 15).slice(5)));
    control.createRecords(sourceId, people, [{ fields: { Name: `new ${round}`, Team: of(teamIds, 1) } }]);
    control.deleteRecords(sourceId, people, of(peopleIds, 20).slice(17));
    control.deleteRecords(sourceId, teams, of(teamIds, 20).slice(15));
  };
  return { sourceId, edit };
}

/** The transaction that last wrote each row. */
async function writtenBy(sql: postgres.Sql): Promise<Map<string, string>> {
  const rows = await sql<{ id: string; by: string }[]>`
    select id, xmin::text as by from teams union all select id, xmin::text from people`;
  return new Map(rows.map(({ id, by }) => [id, by]));
}

/** Kills the worker at the point. */
async function killAt(
  lines: Record<Point["line"], FaultProxy>,
  point: Point,
  worker: Program,
): Promise<void> {
  let seen = 0;
  const isIt = (statement: string) => point.statement.test(statement) && ++seen === point.nth;
  const held = await lines[point.line].hold(isIt, point.at, AbortSignal.timeout(HOLD_MS));
  worker.kill("SIGKILL");
  await worker.exited;
  held.cut();
}

/** Without waiting for the dead worker's heartbeat. */
async function forgetHolder({ ctx }: Fleet): Promise<void> {
  await ctx.db`update job_holders set seen_at = '-infinity'`;
}

const kept = (fleet: Fleet, base: Base) => loadFeed(fleet.ctx.db, base.id);

test.concurrent("I7: if a worker is killed between a payload and its cursor, nothing is missing, and nothing is applied twice", {
  timeout: (60_000 + POINTS.length * 40_000) * slowness(),
  tags: "once",
}, async () => {
  await using releases = new AsyncDisposableStack();
  const { fleet, lines, worker } = await service(releases);
  const { sourceId, edit } = createTeams(fleet);
  let running = releases.use(await worker());
  const base = await connectLive(fleet, sourceId);
  await readOut(fleet, base);
  const sql = await fleet.reader(base);
  const { control } = fleet.sandbox;
  const { webhookId } = (await kept(fleet, base))!;
  // From now on sweeps contribute nothing.
  control.addFault({ kind: "hang", path: SWEEPS, delayMs: 120_000 });
  for (const [round, point] of POINTS.entries()) {
    const before = await writtenBy(sql);
    const { cursor } = (await kept(fleet, base))!;
    const dead = killAt(lines, point, running);
    edit(round);
    await dead;
    expect((await kept(fleet, base))!.cursor === cursor, point.name).toBe(point.isBehind);
    const written = [...(await writtenBy(sql))].filter(([id, by]) => before.get(id) !== by);

    await forgetHolder(fleet);
    running = releases.use(await worker());
    await readOut(fleet, base);
    expect(await expectEqualToSource(fleet, base), point.name).toBeGreaterThan(1000);
    const after = await writtenBy(sql);
    expect(
      written.filter(([id, by]) => after.get(id) !== by),
      point.name,
    ).toEqual([]);
  }
  expect(await kept(fleet, base)).toMatchObject({ webhookId, gapSince: null });
  const runs = await listRuns(fleet.ctx.db, base.id, 50);
  expect(new Set(runs.map(({ kind }) => kind))).toEqual(new Set(["first", "live"]));
  expect((await getBase(fleet.ctx.db, base.id)).live!.missed).toBe(0);
});

/** A lease is renewed meanwhile. */
const REST_MS = TURN_MS + 5000;
/** A base that comes to rest closes its connection: one that logs in again is not at rest yet. */
const SETTLED_MS = 15_000;

/** Waits until the base has had no connection, and no new login, for a while. */
async function untilAtRest(facts: () => Promise<{ logins: number; open: number }>): Promise<void> {
  let since = performance.now();
  let logins = -1;
  await until(
    async () => {
      const now = await facts();
      if (now.open > 0 || now.logins !== logins) since = performance.now();
      logins = now.logins;
      return performance.now() - since >= SETTLED_MS;
    },
    { what: "the base is at rest", timeoutMs: 90_000, intervalMs: 500 },
  );
}

test.concurrent("a live base at rest keeps its lease and no connection, and a read of its feed takes one login", {
  timeout: 300_000,
}, async () => {
  await using fleet = await startLiveFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const fields = [{ name: "Name", type: "singleLineText" as const }];
  const source = control.createBase({
    tables: [{ name: "Tasks", fields, records: [{ fields: { Name: "first" } }] }],
  });
  const base = await connectLive(fleet, source);
  // The feed is read at the next notification, and after five minutes.
  await proveAddress(fleet.ctx);
  await fleet.ctx.db`select pg_notify('basetide_notification', ${base.id})`;

  const server = postgres(inject("postgresUrl"), { max: 1 });
  const { name } = base.database;
  const facts = async () => {
    const [row] = await server<{ logins: number; open: number }[]>`
      select sessions::int as logins, (select count(*)::int from pg_stat_activity where datname = ${name}) as open
      from pg_stat_database where datname = ${name}`;
    return row!;
  };
  const epoch = async () => {
    const [row] = await fleet.ctx.db<{ epoch: string }[]>`
      select replica_epoch as epoch from bases where id = ${base.id}`;
    return Number(row!.epoch);
  };
  await untilAtRest(facts);
  const before = { ...(await facts()), epoch: await epoch() };
  await Bun.sleep(REST_MS);
  expect({ ...(await facts()), epoch: await epoch() }).toEqual(before);

  const owner = await fleet.owner(base);
  const completedAt = async () => {
    const [row] = await owner<{ at: Date }[]>`select completed_at as at from _sync_meta`;
    return row!.at;
  };
  const completed = await completedAt();
  const loggedIn = (await facts()).logins;
  await fleet.ctx.db`select pg_notify('basetide_notification', ${base.id})`;
  await until(async () => (await completedAt()) > completed, {
    what: "the read is in _sync_meta",
    timeoutMs: 60_000,
  });
  expect(await epoch()).toBe(before.epoch);
  expect((await facts()).logins - loggedIn).toBeLessThanOrEqual(2);

  // A read also finds that someone has emptied a table.
  const rows = async () => (await owner`select from tasks`).length;
  await owner`truncate tasks`;
  await fleet.ctx.db`select pg_notify('basetide_notification', ${base.id})`;
  await until(async () => (await rows()) === 1, { what: "the row is back", timeoutMs: 60_000 });
  expect(await epoch()).toBeGreaterThan(before.epoch);

  // A change starts live mode again.
  const [table] = control.dump(source).tables as unknown as WireTable[];
  control.createRecords(source, table!.id, [{ fields: { Name: "after the rest" } }]);
  await until(async () => (await rows()) === 2, { what: "the record is in SQL", timeoutMs: 60_000 });
  await server.end({ timeout: 1 });
});
