/** How many connections of a server a replica has open, and for how long. */
import postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { probe } from "../../../core/postgres";
import {
  CHECKING,
  connectReplica,
  installReplica,
  openForCheck,
  READER_CONNECTIONS,
  serverPool,
  shareServers,
  withAdmin,
} from "../../../core/replica";
import { replicaPool } from "../../../core/replica/connection";
import { ConnectionBudget } from "../../../core/replica/connection-budget";
import { asAdmin } from "../../support/admin";
import { freshDatabase, type TestDatabase } from "../../support/database";
import { until } from "../../support/poll";
import { testReplica } from "../../support/replica";

async function open({ sql }: TestDatabase): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and application_name = 'basetide'`;
  return row!.count;
}

test("fast statements share one connection, a slow one blocks no other, and idling closes all", {
  timeout: 60_000,
}, async () => {
  await using database = await freshDatabase();
  const sql = connectReplica(database.url, { use: "writes" });
  const numbers = Array.from({ length: 50 }, (_, number) => number);
  for (let round = 0; round < 5; round++) {
    const rows = await Promise.all(numbers.map((number) => sql<{ n: number }[]>`select ${number}::int as n`));
    expect(rows.map(([row]) => row!.n)).toEqual(numbers);
  }
  expect(await open(database)).toBe(1);
  let isOver = false;
  const slow = sql`select pg_sleep(20)`.then(
    () => (isOver = true),
    () => {},
  );
  await until(async () => (await sql`select 1`).length === 1, { what: "another statement is answered" });
  await sql`select 2`;
  expect(isOver).toBe(false);
  expect(await open(database)).toBe(2);
  await database.sql`
    select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and query like '%pg_sleep(20)%'
      and pid <> pg_backend_pid()`;
  await slow;
  await until(async () => (await open(database)) === 0, { what: "nothing is open", timeoutMs: 30_000 });
  expect([...(await sql`select 3 as three`)]).toEqual([{ three: 3 }]);
  await sql.end({ timeout: 1 });
});

test("once a second connection has opened, statements keep to one, and the other closes", {
  timeout: 60_000,
}, async () => {
  await using database = await freshDatabase();
  const sql = connectReplica(database.url, { use: "writes" });
  await sql`select 1`;
  const slow = sql`select pg_sleep(20)`.then(
    () => {},
    () => {},
  );
  await sql`select 1`;
  expect(await open(database)).toBe(2);
  await database.sql`
    select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and query like '%pg_sleep(20)%'
      and pid <> pg_backend_pid()`;
  await slow;
  const used = new Set<number>();
  // Busy all the time, one statement after the other: for longer than an idle connection is kept.
  await until(
    async () => {
      used.add((await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid);
      return (await open(database)) === 1;
    },
    { what: "one is closed", timeoutMs: 30_000 },
  );
  expect(used.size).toBe(1);
  await sql.end({ timeout: 1 });
});

test("a second connection closes no other pool's unless its statement waits for long", {
  timeout: 60_000,
}, async () => {
  await using database = await freshDatabase();
  const others = Array.from({ length: READER_CONNECTIONS - 1 }, () =>
    connectReplica(database.url, { use: "console" }),
  );
  const sql = connectReplica(database.url, { use: "console" });
  for (const one of [...others, sql]) await one`select 1`;
  const blocked = await database.sql.begin(async (holder) => {
    await holder`select pg_advisory_xact_lock(1)`;
    const waiting = [sql`select set_config('lock_timeout', '30s', false), pg_advisory_lock(1)`.execute()];
    const from = performance.now();
    let tookMs: number | undefined;
    const answered = sql`select 1`.then(() => {
      tookMs = performance.now() - from;
    });
    const counts = new Set<number>();
    await until(
      async () => {
        counts.add(await open(database));
        return tookMs !== undefined;
      },
      { what: "a second connection answers", timeoutMs: 30_000 },
    );
    await answered;
    expect(tookMs).toBeGreaterThan(4900);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(READER_CONNECTIONS - 1);
    expect(await open(database)).toBe(READER_CONNECTIONS);
    return waiting;
  });
  await Promise.all(blocked);
  await Promise.all([sql, ...others].map((one) => one.end({ timeout: 1 })));
});

test("the connection of a base that is synced outlasts one for writes, as a sweep lasts longer", async () => {
  await using database = await freshDatabase();
  const pools = [connectReplica(database.url), connectReplica(database.url, { use: "writes" })];
  const pids = await Promise.all(
    pools.map(async (sql) => (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid),
  );
  await until(async () => (await open(database)) === 1, { what: "one is closed", timeoutMs: 25_000 });
  const [left] = await database.sql<{ pid: number }[]>`
    select pid from pg_stat_activity where datname = current_database() and application_name = 'basetide'`;
  expect(left!.pid).toBe(pids[0]!);
  await Promise.all(pools.map((sql) => sql.end({ timeout: 1 })));
});

test("sync prepares a statement once it runs again, and a write at once, as it must not wait for a further round trip", async () => {
  await using database = await freshDatabase();
  for (const [use, times] of [
    ["sync", 2],
    ["writes", 1],
  ] as const) {
    const sql = connectReplica(database.url, { use });
    const prepared = async () => {
      const [row] = await sql.unsafe<{ count: number }[]>(
        "select count(*)::int as count from pg_prepared_statements where statement like '%as asked%'",
      );
      return row!.count;
    };
    const ask = async (asked: number) =>
      expect([...(await sql`select ${asked}::int as asked`)]).toEqual([{ asked }]);
    for (let time = 1; time < times; time++) {
      await ask(time);
      expect(await prepared(), use).toBe(0);
    }
    for (let time = times; time < times + 3; time++) {
      await ask(time);
      expect(await prepared(), use).toBe(1);
    }
    await sql.end({ timeout: 1 });
  }
});

test("a transaction keeps its connection, whatever else the pool is used for", async () => {
  await using database = await freshDatabase();
  const sql = connectReplica(database.url);
  await sql`create table public.t (n integer)`;
  const counts = await Promise.all(
    [1, 2, 3].map((n) =>
      sql.begin(async (tx) => {
        await tx`insert into public.t values (${n})`;
        await tx`select pg_sleep(0.1)`;
        return (await tx`select from public.t where n = ${n}`).length;
      }),
    ),
  );
  expect(counts).toEqual([1, 1, 1]);
  expect(await sql`select from public.t`).toHaveLength(3);
  await sql.end({ timeout: 1 });
});

/** A pool that holds connections of the budget. */
function pool(budget: ConnectionBudget) {
  const made = {
    resting: 0,
    closeIdle() {
      const closed = made.resting;
      made.resting = 0;
      for (let one = 0; one < closed; one++) budget.give();
      return closed;
    },
    rest() {
      made.resting++;
      budget.rests(made);
    },
  };
  return made;
}

test("a budget closes the connections that were idle longest first, and then each one that becomes idle", async () => {
  const budget = new ConnectionBudget({ share: 0.2 });
  const [first, second, third, fourth] = [pool(budget), pool(budget), pool(budget), pool(budget)];
  for (const one of [first, second]) {
    await budget.take();
    // Of the server's ten, it may have two.
    budget.opened(10);
    one!.rest();
  }
  const order: string[] = [];
  const takes = [third, fourth].map((_, index) => budget.take().then(() => order.push(`taken ${index}`)));
  await Promise.all(takes);
  expect([first!.resting, second!.resting]).toEqual([0, 0]);
  const late = budget.take().then(() => order.push("taken late"));
  await new Promise(setImmediate);
  expect(order).toEqual(["taken 0", "taken 1"]);
  third!.rest();
  await late;
  expect(order).toEqual(["taken 0", "taken 1", "taken late"]);
});

test("a budget closes no connection that a pool keeps, until the pool releases it or its time is over", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const budget = new ConnectionBudget({ connections: 2 });
  const [first, second] = [pool(budget), pool(budget)];
  for (const one of [first, second]) {
    budget.keep(one, 1000);
    await budget.take();
    one.rest();
  }
  const order: string[] = [];
  for (const name of ["one", "other"]) void budget.take().then(() => order.push(name));
  await vi.advanceTimersByTimeAsync(900);
  expect(order).toEqual([]);
  budget.release(second);
  await vi.advanceTimersByTimeAsync(0);
  expect([order, first.resting, second.resting]).toEqual([["one"], 1, 0]);
  await vi.advanceTimersByTimeAsync(200);
  expect([order, first.resting]).toEqual([["one", "other"], 0]);
});

test("the first connection tells the budget the server's limit, so that those that wait close none", async () => {
  const budget = new ConnectionBudget({ share: 0.3 });
  const first = pool(budget);
  let taken = 0;
  const takes = Array.from({ length: 30 }, () => budget.take().then(() => taken++));
  await new Promise(setImmediate);
  expect(taken).toBe(10);
  budget.opened(100);
  first.rest();
  await Promise.all(takes);
  expect([budget.most, first.resting]).toEqual([30, 1]);
});

test("a server reports its limit to each new connection", async () => {
  await using database = await freshDatabase();
  const [row] = await database.sql<
    { most: number }[]
  >`select current_setting('max_connections')::int as most`;
  const opened = vi.spyOn(ConnectionBudget.prototype, "opened");
  onTestFinished(() => opened.mockRestore());
  const sql = connectReplica(database.url);
  await sql`select 1`;
  await sql.end({ timeout: 1 });
  expect(opened.mock.calls).toContainEqual([row!.most]);
});

test("workers share a server's connections, and the excess is closed when idle as another worker starts", async () => {
  let workers = 1;
  const budget = new ConnectionBudget({ share: 0.3 }, { sharers: () => workers });
  const first = pool(budget);
  await budget.take();
  budget.opened(100);
  first.rest();
  expect(budget.most).toBe(30);
  for (let open = 1; open < 30; open++) await budget.take();
  workers = 3;
  expect(budget.most).toBe(10);
  first.rest();
  expect(first.resting).toBe(0);
  shareServers(0);
  expect(new ConnectionBudget({ share: 0.3 }).most).toBe(10);
});

test("few logins run at once, whether they succeed or fail", async () => {
  const budget = new ConnectionBudget({ connections: 1000 });
  let taken = 0;
  const takes = Array.from({ length: 100 }, () => budget.take().then(() => taken++));
  const taking = async () => {
    await new Promise(setImmediate);
    return taken;
  };
  expect(await taking()).toBe(32);
  budget.opened(1000);
  expect(await taking()).toBe(33);
  budget.giveUnopened();
  expect(await taking()).toBe(34);
  // That of an open connection makes no room for another login.
  budget.give();
  expect(await taking()).toBe(34);
  for (let opened = 1; opened < 99; opened++) budget.opened(1000);
  await Promise.all(takes);
});

test("a connection that waits for other logins closes no idle one", async () => {
  const budget = new ConnectionBudget({ connections: 1000 });
  const first = pool(budget);
  await budget.take();
  budget.opened(1000);
  let taken = 0;
  const takes = Array.from({ length: 33 }, () => budget.take().then(() => taken++));
  first.rest();
  await new Promise(setImmediate);
  expect([taken, first.resting]).toEqual([32, 1]);
  budget.opened(1000);
  await Promise.all(takes);
});

test("logins that fail take no room from later ones", { timeout: 60_000 }, async () => {
  await using database = await freshDatabase();
  const missing = Object.assign(new URL(database.url), { pathname: "/missing" }).href;
  const closed = Object.assign(new URL(database.url), { port: "1" }).href;
  for (const url of [missing, closed]) {
    const failures = Array.from({ length: 40 }, async () => {
      const sql = connectReplica(url, { use: "writes" });
      await expect(sql`select 1`).rejects.toThrow();
      await sql.end({ timeout: 1 });
    });
    await Promise.all(failures);
  }
  const pools = Array.from({ length: 40 }, () => connectReplica(database.url, { use: "writes" }));
  // Twice, as the connections of the first time have closed by then.
  for (let round = 0; round < 2; round++) {
    await Promise.all(pools.map((sql) => sql`select 1`));
    await asAdmin(
      (admin) => admin`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = ${new URL(database.url).pathname.slice(1)} and application_name = 'basetide'`,
    );
    await until(async () => (await open(database)) === 0, { what: "all are closed" });
  }
  await Promise.all(pools.map((sql) => sql.end({ timeout: 1 })));
});

test("a full server gets fewer connections, after pauses, and more when it has room again", async () => {
  let now = 0;
  const budget = new ConnectionBudget({ share: 0.3 }, { now: () => now });
  for (let open = 0; open < 5; open++) await budget.take();
  expect(budget.refused()).toBe(true);
  budget.give();
  expect(budget.most).toBe(4);
  let isTaken = false;
  const taken = budget.take().then(() => (isTaken = true));
  budget.give();
  await new Promise(setImmediate);
  // There is room, but the server has just refused one.
  expect(isTaken).toBe(false);
  now += 5000;
  budget.give();
  await taken;
  budget.opened(1000);
  expect(budget.most).toBe(5);
  expect(budget.refused()).toBe(true);
  now += 61_000;
  expect(budget.refused()).toBe(false);
});

test("a connection that another one of the budget waits for is opened, even if the server was seen to allow only one", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const budget = new ConnectionBudget({ connections: 8 });
  await budget.take();
  await budget.take();
  budget.refused();
  budget.give();
  expect(budget.most).toBe(1);
  let isTaken = false;
  // The holder of the first connection gives it back only after this one.
  const inner = budget.take().then(() => (isTaken = true));
  await vi.advanceTimersByTimeAsync(1000);
  expect(isTaken).toBe(false);
  await vi.advanceTimersByTimeAsync(10_000);
  await inner;
  expect(budget.most).toBe(2);
});

test("a limit by number does not depend on the server's", async () => {
  const budget = new ConnectionBudget({ connections: 2 });
  await budget.take();
  budget.opened(100);
  expect(budget.most).toBe(2);
});

/** A database that the role `limited` owns, which may open `most` connections. Gone when the test is over. */
async function limitedOwner(most: number): Promise<{ url: string; role: string; database: TestDatabase }> {
  const database = await freshDatabase();
  const role = `limited_${crypto.randomUUID().replaceAll("-", "")}`;
  const name = new URL(database.url).pathname.slice(1);
  await asAdmin(async (admin) => {
    await admin.unsafe(`create role ${role} login password 'limited' connection limit ${most}`);
    await admin.unsafe(`grant connect, create on database ${name} to ${role}`);
  });
  onTestFinished(async () => {
    await asAdmin(async (admin) => {
      await admin.unsafe(`alter database ${name} allow_connections false`);
      await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
    });
    await database[Symbol.asyncDispose]();
    await asAdmin((admin) => admin.unsafe(`drop role ${role}`));
  });
  const url = Object.assign(new URL(database.url), { username: role, password: "limited" }).href;
  return { url, role, database };
}

test("installs, checks and the admin's work wait for a full server, and have few connections", {
  timeout: 120_000,
}, async () => {
  const { url } = await limitedOwner(1);
  const other = postgres(url, { max: 1 });
  await other`select 1`;
  const refused = vi.spyOn(ConnectionBudget.prototype, "refused");
  const work = Promise.all([
    withAdmin(url, async (sql) => (await sql`select 1`).length),
    installReplica(url, { schema: "airtable" }).then(() => 1),
    probe(
      url,
      (to, session) => connectReplica(to, { ...session, ...CHECKING }),
      async () => 1,
      {
        open: openForCheck,
      },
    ),
  ]);
  await until(() => refused.mock.calls.length > 0, { what: "a login is refused", timeoutMs: 30_000 });
  refused.mockRestore();
  await other.end();
  expect(await work).toEqual([1, 1, 1]);
});

test("an admin's statements share a few connections", { timeout: 60_000 }, async () => {
  await using database = await freshDatabase();
  let [running, most] = [0, 0];
  const numbers = Array.from({ length: 20 }, (_, number) => number);
  const answers = await Promise.all(
    numbers.map((number) =>
      withAdmin(database.url, async (admin) => {
        await admin`select pg_sleep(0.1)`;
        most = Math.max(most, ++running);
        const [row] = await admin<{ n: number }[]>`select ${number}::int as n, pg_sleep(0.1)`;
        running--;
        return row!.n;
      }),
    ),
  );
  expect(answers).toEqual(numbers);
  expect(most).toBeLessThanOrEqual(8);
});

test("a statement without patience fails at once, and takes nothing from the others' budget", async () => {
  const { url } = await limitedOwner(1);
  await withAdmin(url, async (admin) => {
    await admin`select 1`;
    const refused = vi.spyOn(ConnectionBudget.prototype, "refused");
    const { sql } = serverPool(url, { max: 1 }, { use: "admin", patienceMs: 0 });
    await expect(sql`select 1`).rejects.toMatchObject({ code: "53300" });
    expect(refused).not.toHaveBeenCalled();
    refused.mockRestore();
    await sql.end({ timeout: 1 });
  });
});

test("statements wait for a full server, and none fails", { timeout: 60_000 }, async () => {
  const { url } = await limitedOwner(2);
  const pools = Array.from({ length: 6 }, () => replicaPool(url));
  try {
    // Each holds its connection for longer than the driver tries at once.
    const answers = await Promise.all(
      pools.map(async ({ sql, isConnected }, index) => {
        expect(isConnected()).toBe(false);
        const [row] = await sql.begin((tx) => tx<{ n: number }[]>`select ${index}::int as n, pg_sleep(0.2)`);
        expect(isConnected()).toBe(true);
        await sql.end({ timeout: 5 });
        expect(isConnected()).toBe(false);
        return row!.n;
      }),
    );
    expect(answers).toEqual([0, 1, 2, 3, 4, 5]);
  } finally {
    await Promise.all(pools.map(({ sql }) => sql.end({ timeout: 1 })));
  }
});

test("a session that keeps the plans of many tables is replaced", async () => {
  await using t = await testReplica();
  const { replica } = t;
  const session = async () => {
    const [row] = await replica.sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    return row!.pid;
  };
  const first = await session();
  for (let nth = 0; nth < 300; nth++) replica.planned(`tbl${nth % 10}`);
  expect(await session()).toBe(first);
  for (let nth = 0; nth < 300; nth++) replica.planned(`tbl${nth}`);
  expect(await session()).not.toBe(first);
});

test("statements that are canceled take no room from later ones", { timeout: 60_000 }, async () => {
  await using database = await freshDatabase();
  const isRunning = async () =>
    (
      await database.sql`select from pg_stat_activity where datname = current_database() and query like 'select pg_sleep(61)%'`
    ).length > 0;
  for (let round = 0; round < 2 * READER_CONNECTIONS; round++) {
    const sql = connectReplica(database.url, { use: "console" });
    const slow = sql`select pg_sleep(61)`.execute();
    const code = slow.then(
      () => "answered",
      (error: { code?: string }) => error.code,
    );
    await until(isRunning, { what: "it runs" });
    slow.cancel();
    expect(await code).toBe("57014");
    await sql.end({ timeout: 1 });
  }
});
