/**
 * A tenant cannot exhaust a server (S9): each attack, with the role of a customer, on a server that was prepared for
 * the service. Defaults are lifted first, as an attacker would.
 */
import postgres from "postgres";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import {
  databaseUrl,
  endExcess,
  endPauses,
  examineHosted,
  pauseRole,
  provisionDatabase,
  setWritable,
  watchIds,
} from "../../../core/replica";
import { SESSION_LIMITS } from "../../../core/replica/role-limits";
import { asAdmin } from "../../support/admin";
import { until } from "../../support/poll";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";

/** A driver's error for a session that was ended: the server's text, or that the connection is closed. */
const ENDED = /^(57P01|CONNECTION_CLOSED)$/;

let server: ReplicaServer;
beforeAll(async () => {
  server = await replicaServer({ max_connections: "40" });
});
afterAll(() => server?.[Symbol.asyncDispose]());

interface Tenant {
  role: string;
  database: string;
  password: string;
  url: string;
  connect(): postgres.Sql;
}

async function tenant(connections?: number): Promise<Tenant> {
  const named = {
    database: `bt_${hex()}`,
    role: `bt_${hex()}`,
    password: "of-the-tenant",
    connections,
  };
  await provisionDatabase(server.clusterUrl, "tenant-limits", named);
  const url = Object.assign(new URL(databaseUrl(server.clusterUrl, named.database)), {
    username: named.role,
    password: named.password,
  }).href;
  return {
    ...named,
    url,
    connect() {
      const sql = postgres(url, { max: 1, onnotice: () => {}, max_lifetime: null, idle_timeout: 0 });
      onTestFinished(() => sql.end({ timeout: 1 }).catch(() => {}));
      return sql;
    },
  };
}

const hex = () => crypto.randomUUID().replaceAll("-", "").slice(0, 16);

/** SQLSTATE of what `work` fails with, or "done". */
const outcome = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: { code?: string }) => error.code ?? String(error),
  );

/** The watchdog's check, as the admin, which is no superuser. */
async function look(roles: string[], over: Partial<typeof SESSION_LIMITS> = {}, writers: string[] = []) {
  return asAdmin(
    (admin) =>
      endExcess(admin, { roles, writers, limits: { ...SESSION_LIMITS, ...over } as typeof SESSION_LIMITS }),
    server.clusterUrl,
  );
}

test("the admin of the cluster is no superuser", async () => {
  const [row] = await asAdmin(
    (admin) => admin`select rolsuper from pg_roles where rolname = current_user`,
    server.clusterUrl,
  );
  expect(row).toEqual({ rolsuper: false });
});

test("disk: temporary files end at a limit that the role cannot lift", async () => {
  const { role, connect } = await tenant();
  const sql = connect();
  await sql`set default_transaction_read_only = off`;
  expect(await outcome(sql`set temp_file_limit = -1`)).toBe("42501");
  expect(await outcome(sql`set temp_file_limit = '4TB'`)).toBe("42501");
  expect(await outcome(sql.unsafe(`alter role ${role} set temp_file_limit = -1`))).toBe("42501");
  await outcome(sql.unsafe(`alter role ${role} reset temp_file_limit`));
  await outcome(sql.unsafe(`alter role ${role} reset all`));
  expect(await connect()`select current_setting('temp_file_limit') as is`).toEqual([{ is: "2GB" }]);
  // The same limit, small enough to be reached in a test; the admin sets it without a superuser's rights.
  await asAdmin((admin) => admin.unsafe(`alter role ${role} set temp_file_limit = '5MB'`), server.clusterUrl);
  const greedy = connect();
  await greedy`set work_mem = '64kB'`;
  const sort = greedy`
    select count(*) from (
      select g, repeat(md5(g::text), 30) as x from generate_series(1, 60000) as g order by x offset 0) as s`;
  expect(await outcome(sort)).toBe("53400");
});

test("disk: the watchdog ends the sessions of a role whose temporary files are too large in total", async () => {
  const { role, connect } = await tenant();
  const [large, small] = [connect(), connect()];
  const sort = (rows: number) => `
    set work_mem = '64kB'; set statement_timeout = 0;
    select count(*), pg_sleep(60) from (
      select g, repeat(md5(g::text), 30) as x from generate_series(1, ${rows}) as g order by x offset 0) as s`;
  const running = [outcome(large.unsafe(sort(60_000))), outcome(small.unsafe("select pg_sleep(60)"))];
  const ended = await until(
    async () => {
      const found = await look([role], { tempBytes: 20 * 1024 ** 2 });
      return found.length > 0 && found;
    },
    { what: "the session with the files is ended" },
  );
  expect(ended).toMatchObject([{ role, reason: "temp_files" }]);
  expect(await running[0]).toMatch(ENDED);
  await small.end({ timeout: 0 });
  await running[1];
});

test("transaction ids: a reader uses none in a loop, and one that holds any is ended", async () => {
  const { role, connect } = await tenant();
  const sql = connect();
  await sql`set default_transaction_read_only = off`;
  for (const statement of [
    "do $$ begin for i in 1..100000000 loop perform txid_current(); commit; end loop; end $$",
    "select txid_current()",
    "select pg_current_xact_id()",
    "create temp table mine (a int)",
    "create procedure mine() language sql as 'select 1'",
    "select lo_create(0)",
    "select pg_notify('a', 'b')",
    "select nextval('pg_catalog.pg_class_oid_seq')",
    "select from pg_class for update",
    "select from pg_class for key share",
  ]) {
    expect([statement, await outcome(sql.unsafe(statement))]).toEqual([
      statement,
      expect.stringMatching(/^(42501|42P01|55000|25P01|0A000)$/),
    ]);
  }
  // These succeed, and take no id: savepoints, cursors, LISTEN, locks that reads take.
  const taken = await sql
    .begin("read write", async (tx) => {
      await tx`savepoint a`;
      await tx`select count(*) from pg_class`;
      await tx`savepoint b`;
      await tx`listen anything`;
      await tx`lock table pg_catalog.pg_class in access share mode`.catch(() => {});
      return tx`select pg_current_xact_id_if_assigned() as id`;
    })
    .catch((error: { code: string }) => error.code);
  expect(taken === "25P02" || (taken as unknown as { id: unknown }[])[0]!.id === null).toBe(true);
  // What cannot be forbidden: a change of the role itself. It holds an id until it ends, and is ended.
  const burner = connect();
  await burner`begin read write`;
  await burner.unsafe(`alter role ${role} set application_name = 'mine'`);
  expect(await look([role])).toMatchObject([{ role, reason: "transaction_id" }]);
});

/** What a reader can still use up ids with, repeatedly. */
const BURNERS = {
  notify: () => "notify x; commit;".repeat(500),
  "alter role": (role: string) => `alter role ${role} set application_name = 'mine'`,
  "alter default privileges": (role: string) =>
    `alter default privileges for role ${role} grant select on tables to ${role};
     alter default privileges for role ${role} revoke select on tables from ${role}`,
  subtransactions: (role: string) =>
    `begin; ${`savepoint a; alter role ${role} set application_name = 'a'; release a;`.repeat(500)} commit`,
};

test.each(Object.keys(BURNERS))(
  "transaction ids: a reader that uses them up with %s is detected and paused",
  async (name) => {
    const { role, database, password, connect } = await tenant();
    const statement = BURNERS[name as keyof typeof BURNERS](role);
    const sql = connect();
    await sql`set default_transaction_read_only = off`;
    let isOver = false;
    const burning = (async () => {
      for (;;) if (/^(57P01|CONNECTION|53300)/.test(await outcome(sql.unsafe(statement).simple()))) break;
      isOver = true;
    })();
    const admin = <T>(work: (sql: postgres.Sql) => Promise<T>) => asAdmin(work, server.clusterUrl);
    const ids = watchIds();
    await until(async () => (await admin((sql) => ids.find(sql, [role]))).length > 0, {
      what: "the reader that uses up ids is detected",
    });
    expect(isOver).toBe(false);
    expect(await admin((sql) => pauseRole(sql, role))).toMatchObject({ role, ended: 1 });
    await burning;
    expect(await outcome(connect()`select 1`)).toBe("53300");
    // It reports itself, and another worker, or the same one after a restart, ends it, not before its time.
    const hosted = { database, role, password };
    expect(await examineHosted(server.clusterUrl, hosted, [])).toMatchObject({
      isLimited: true,
      takesPassword: true,
      pausedUntil: expect.any(Date),
    });
    expect(await admin((sql) => endPauses(sql, new Map([[role, 7]])))).toEqual([]);
    await admin((sql) =>
      sql.unsafe(`comment on role ${role} is 'basetide: pause 1, until 2001-01-01T00:00:00.000Z'`),
    );
    expect(await admin((sql) => endPauses(sql, new Map([[role, 7]])))).toEqual([role]);
    expect(await outcome(connect()`select 1`)).toBe("done");
    expect(
      await admin((sql) => sql`select rolconnlimit as is from pg_roles where rolname = ${role}`),
    ).toEqual([{ is: 7 }]);
  },
);

test("transaction ids: a search is due at first, and for a minute after ids were assigned fast", () => {
  const clock = vi.spyOn(performance, "now");
  onTestFinished(() => clock.mockRestore());
  const ids = watchIds();
  const isDue = (atMs: number, nextId: number) => {
    clock.mockReturnValue(atMs);
    return ids.isDue(String(nextId));
  };
  expect(isDue(0, 1000)).toBe(true);
  expect(isDue(59_000, 1200)).toBe(true);
  expect(isDue(61_000, 1500)).toBe(false);
  expect(isDue(64_000, 2000)).toBe(false);
  expect(isDue(67_000, 2700)).toBe(true);
  expect(isDue(126_000, 2700)).toBe(true);
  expect(isDue(128_000, 2700)).toBe(false);
});

test("transaction ids: while the server assigns few, no session is looked at", async () => {
  const { role } = await tenant();
  const statements: string[] = [];
  const admin = postgres(server.clusterUrl, {
    max: 1,
    debug: (_connection, statement) => statements.push(statement),
  });
  onTestFinished(() => admin.end({ timeout: 1 }));
  expect(await watchIds().find(admin, [role])).toEqual([]);
  expect(statements.filter((statement) => statement.includes("pg_snapshot_xmax")).length).toBeGreaterThan(1);
  expect(statements.filter((statement) => statement.includes("pg_stat_get_activity"))).toEqual([]);
});

test("pauses: each is twice as long as the previous one, up to 60 minutes; the role can lift none", async () => {
  const { role, connect } = await tenant();
  const sql = connect();
  await sql`set default_transaction_read_only = off`;
  const minutes: number[] = [];
  await asAdmin(async (admin) => {
    for (let index = 0; index < 8; index++) {
      const pause = await pauseRole(admin, role);
      minutes.push(Math.round((pause!.until.getTime() - Date.now()) / 60_000));
    }
    // The session that existed when the pause began, if it survived.
    await admin.unsafe(`alter role ${role} connection limit 5`);
  }, server.clusterUrl);
  expect(minutes).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  const again = connect();
  await again`set default_transaction_read_only = off`;
  expect(await outcome(again.unsafe(`alter role ${role} connection limit 100`))).toBe("42501");
  expect(await outcome(again.unsafe(`comment on role ${role} is null`))).toBe("42501");
});

test("transaction ids: a role that only reads is never detected, whatever else uses up ids on the server", async () => {
  const readers = await Promise.all([tenant(), tenant()]);
  const noisy = await tenant();
  const stop = new AbortController();
  const forever = async (work: () => Promise<unknown>) => {
    while (!stop.signal.aborted) await work();
  };
  // Not one of the readers: it acts as the service, or a writer.
  const burner = noisy.connect();
  const load = [forever(() => burner.unsafe("notify x; commit;".repeat(500)).simple())];
  for (const { connect } of readers) {
    const [plain, prepared, cursors, many] = [connect(), connect(), connect(), connect()];
    await plain`set default_transaction_read_only = off`;
    await plain`listen x`;
    load.push(
      forever(() =>
        plain
          .unsafe("select count(*) from pg_class; commit; begin; savepoint a; select 1; release a; commit;")
          .simple(),
      ),
      forever(() => prepared`select relname from pg_class where oid = ${1259}`),
      forever(() => cursors`select generate_series(1, 500) as n`.cursor(50, () => {})),
      forever(() =>
        many.begin(async (tx) => [
          await tx`savepoint a`,
          await tx`select md5(n::text) from generate_series(1, 2000) as n`,
          await tx`unlisten *`,
        ]),
      ),
    );
  }
  const roles = readers.map(({ role }) => role);
  await asAdmin(async (admin) => {
    const ids = watchIds();
    // Enough checks to find the one that does use up ids, twice.
    for (let times = 0; times < 2; ) {
      const found = await ids.find(admin, [...roles, noisy.role]);
      expect(found.filter((role) => role !== noisy.role)).toEqual([]);
      times += found.length;
    }
    expect(await endExcess(admin, { roles, writers: [] })).toEqual([]);
  }, server.clusterUrl);
  stop.abort();
  await Promise.all(load);
}, 60_000);

test("other databases: on a server that admits every role, the watchdog ends a customer's session there", async () => {
  const { role, database, connect, url } = await tenant();
  await asAdmin((admin) => admin.unsafe("create database open_to_all"), server.superuserUrl);
  const elsewhere = postgres(Object.assign(new URL(url), { pathname: "/open_to_all" }).href, { max: 1 });
  onTestFinished(() => elsewhere.end({ timeout: 1 }).catch(() => {}));
  const pidOf = async (sql: postgres.Sql) =>
    (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid;
  const [home, away] = [connect(), await pidOf(elsewhere)];
  const kept = await pidOf(home);
  const ended = await asAdmin(
    (admin) => endExcess(admin, { roles: [role], databases: [database], writers: [] }),
    server.clusterUrl,
  );
  expect(ended).toMatchObject([{ role, database: "open_to_all", reason: "other_database" }]);
  await until(
    async () =>
      (await asAdmin((admin) => admin`select from pg_stat_activity where pid = ${away}`, server.superuserUrl))
        .length === 0,
    { what: "the session is over", timeoutMs: 30_000 },
  );
  expect(await pidOf(home)).toBe(kept);
});

test("transaction ids: the role of a writable database may hold one", async () => {
  const { role, database, connect } = await tenant();
  await setWritable(databaseUrl(server.clusterUrl, database), role, "public", true);
  const sql = connect();
  await sql.begin("read write", async (tx) => {
    await tx`create table mine (a int)`;
    expect(await look([role], {}, [role])).toEqual([]);
  });
  expect(await sql`select * from mine`).toEqual([]);
});

test("connections: a role has ten, one that has more is cut back, and the service connects when all others are used", async () => {
  const { role, connect } = await tenant();
  const open = async () => {
    const sql = connect();
    return outcome(sql`select 1`);
  };
  const answers: string[] = [];
  for (let index = 0; index < 12; index++) answers.push(await open());
  expect(answers.filter((answer) => answer === "done")).toHaveLength(10);
  expect(answers.filter((answer) => answer === "53300")).toHaveLength(2);
  await asAdmin((admin) => admin.unsafe(`alter role ${role} connection limit 4`), server.clusterUrl);
  const ended = await look([role]);
  expect(ended.map(({ reason }) => reason)).toEqual(Array(6).fill("connections"));
  // Several tenants together take every connection that is not reserved: 40, minus 8 and 3.
  const crowd = await Promise.all([tenant(), tenant(), tenant()]);
  const all: string[] = [];
  for (const one of crowd) {
    for (let index = 0; index < 10; index++) all.push(await outcome(one.connect()`select 1`));
  }
  expect(all).toContain("53300");
  expect(await asAdmin((admin) => admin`select 1 as one`, server.clusterUrl)).toEqual([{ one: 1 }]);
});

test("connections: all roles of one account are counted together, and another account keeps its own", async () => {
  const [first, second, other] = [await tenant(), await tenant(), await tenant()];
  const sessions = [first, second, first, second, other, other].map((one) => one.connect());
  const pidOf = async (session: postgres.Sql) =>
    (await session<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid;
  const before: number[] = [];
  // One after the other: the oldest of an account stay.
  for (const session of sessions) before.push(await pidOf(session));
  const roles = [first.role, second.role, other.role];
  const accounts = { ids: ["acc_one", "acc_one", "acc_other"], connections: 3 };
  const ended = await asAdmin(
    (admin) => endExcess(admin, { roles, writers: [], accounts }),
    server.clusterUrl,
  );
  expect(ended).toMatchObject([{ role: second.role, reason: "account_connections" }]);
  const rows = await asAdmin(
    (admin) => admin`select pid from pg_stat_activity where pid = any (${before}::int[])`,
    server.superuserUrl,
  );
  expect(before.map((pid) => rows.some((row) => row.pid === pid))).toEqual([
    true,
    true,
    true,
    false,
    true,
    true,
  ]);
});

test("an idle transaction, a long statement and an old snapshot are ended, whatever the role's settings", async () => {
  const { role, connect } = await tenant();
  const idle = connect();
  await idle`set idle_in_transaction_session_timeout = 0`;
  await idle`begin`;
  expect(await look([role])).toEqual([]);
  expect(await idle`select 1 as one`).toEqual([{ one: 1 }]);
  await until(async () => (await look([role], { idleInTransactionSeconds: 0.05 })).length > 0, {
    what: "the idle transaction is ended",
  });
  const long = connect();
  await long`set statement_timeout = 0`;
  const sleeping = outcome(long`select pg_sleep(60)`);
  const ended = await until(
    async () => {
      const found = await look([role], { statementSeconds: 0.05 });
      return found.length > 0 && found;
    },
    { what: "the statement is ended" },
  );
  expect(ended).toMatchObject([{ role, reason: "statement" }]);
  expect(await sleeping).toMatch(ENDED);
  const holder = connect();
  await holder`begin isolation level repeatable read`;
  await holder`select 1`;
  await asAdmin(async (admin) => {
    for (let index = 0; index < 5; index++) await admin`select pg_current_xact_id()`;
  }, server.superuserUrl);
  expect(await look([role], { snapshotAge: 3 })).toMatchObject([{ role, reason: "snapshot" }]);
});

test("a transaction of many short statements is ended, and so is a session with too many parallel workers", async () => {
  const { role, connect } = await tenant();
  const long = connect();
  await long`begin`;
  await long`select 1`;
  const lengthy = await until(
    async () => {
      // Neither idle for long nor in a long statement.
      await outcome(long`select 1`);
      const found = await look([role], { transactionSeconds: 0.05 });
      return found.length > 0 && found;
    },
    { what: "the transaction is ended" },
  );
  expect(lengthy).toMatchObject([{ role, reason: "transaction" }]);
  const wide = connect();
  for (const setting of [
    "max_parallel_workers_per_gather = 4",
    "parallel_setup_cost = 0",
    "parallel_tuple_cost = 0",
    "min_parallel_table_scan_size = 0",
    "min_parallel_index_scan_size = 0",
  ])
    await wide.unsafe(`set ${setting}`);
  await wide`set max_parallel_workers = 8`;
  // Each row takes a while, in the workers.
  const running = outcome(
    wide`select count(*) from pg_attribute as a, pg_attribute as b, pg_attribute as c where a.attnum + b.attnum + c.attnum < -1000`,
  );
  const ended = await until(
    async () => {
      const found = await look([role], { parallelWorkers: 0 });
      return found.length > 0 && found;
    },
    { what: "the session with the workers is ended" },
  );
  expect(ended).toMatchObject([{ role, reason: "parallel_workers" }]);
  expect(await running).toMatch(ENDED);
});

test("log: errors that a role causes are not logged, and it cannot enable that", async () => {
  const { connect } = await tenant();
  const sql = connect();
  expect(await sql`select current_setting('log_min_messages') as is`).toEqual([{ is: "fatal" }]);
  for (const statement of [
    "set log_min_messages = debug5",
    "set log_min_error_statement = debug5",
    "set log_statement = 'all'",
    "set log_min_duration_statement = 0",
    "do $$ begin raise log 'mine'; end $$",
  ]) {
    expect([statement, await outcome(sql.unsafe(statement))]).toEqual([statement, "42501"]);
  }
});

test("the watchdog ignores other roles: the service's, and those of another installation", async () => {
  const { role, connect } = await tenant();
  const sql = connect();
  await sql`begin`;
  expect(await look([], { idleInTransactionSeconds: 0, connections: 0 } as never)).toEqual([]);
  expect(await look(["postgres", "basetide_test_cluster"], { idleInTransactionSeconds: 0 })).toEqual([]);
  expect(await sql`select current_user as role`).toEqual([{ role }]);
});
