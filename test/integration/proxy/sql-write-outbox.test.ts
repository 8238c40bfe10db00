/** SQL writes that are queued: transactions wait in the outbox of their database until a proxy has them made. */
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { moveBase } from "../../../core/control/base-move";
import {
  type Base,
  getBase,
  replicaTarget,
  switchSqlWrites,
  updateSettings,
} from "../../../core/control/bases";
import { finishSqlWrites } from "../../../core/control/bases/restore-writes";
import { listAllWrites } from "../../../core/control/change-sets";
import { addCluster } from "../../../core/control/placement";
import { createRateLimiter } from "../../../core/limiter";
import { installWrites, openOutbox, removeWrites } from "../../../core/replica";
import { errorOf } from "../../support/error-of";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";
import { writableTasks, writeStack } from "../../support/sql-writes";

let stack: ProxyStack;

beforeAll(async () => {
  // Without a port for SQL writes: nothing connects to this installation.
  stack = await proxyStack({ UPSTREAM_TIMEOUT_MS: "1000", SCHEMA_POLL_SECONDS: "0.1" });
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => stack.sandbox.control.clearFaults());

type Scene = Awaited<ReturnType<typeof writableTasks>>;
type Writer = Awaited<ReturnType<Scene["writer"]>>;

const queuedTasks = (count = 3, at = stack) => writableTasks(at, count, { isQueued: true });
const names = (at: Scene) => at.inSource().map(({ Name }) => Name as string);

/** Connects as the role that Basetide writes with. */
async function asAdmin(at: Scene, of = stack): Promise<postgres.Sql> {
  const { url } = await replicaTarget(of.ctx, at.base);
  const sql = postgres(url as string, { max: 1, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return sql;
}

/** The rows of the user, when all have results. */
async function results(sql: Writer) {
  const open = () => sql`select from write.log where state in ('queued', 'sent')`;
  await until(async () => (await open()).length === 0, {
    what: "all writes have a result",
    timeoutMs: 30_000,
  });
  return sql<{ operation: string; record: string | null; state: string; error: string }[]>`
    select operation, record, state, error from write.log`;
}

/** Keeps proxies from recording what they have taken, until it is called. */
async function holdTaking(admin: postgres.Sql): Promise<() => Promise<unknown>> {
  await admin.unsafe(`
    create function write_own.hold() returns trigger language plpgsql as 'begin raise exception ''held''; end';
    create trigger hold before update on write_own.outbox for each row execute function write_own.hold()`);
  return () => admin.unsafe("drop trigger hold on write_own.outbox; drop function write_own.hold()");
}

test("COMMIT says that the writes are queued; Airtable gets each transaction once, and the log has the results", async () => {
  const at = await queuedTasks();
  const notices: postgres.Notice[] = [];
  const sql = await at.writer({}, { onnotice: (notice) => notices.push(notice) });
  const [one] =
    await sql`insert into write.tasks (name, hours, status) values ('New', 1.5, 'Done') returning id, name`;
  expect(one).toEqual({ id: null, name: "New" });
  expect(notices).toMatchObject([
    {
      severity: "NOTICE",
      message: "basetide-sql: queued",
      detail: expect.stringMatching(/^The change set chs_\w{20} is committed here, and not yet in Airtable/),
    },
  ]);
  const set = await sql.begin(async (tx) => {
    await tx`update write.tasks set status = 'Done' where name = 'Task 0'`;
    await tx`delete from write.tasks where name = 'Task 1'`;
    await tx`insert into write.tasks (name, status) values ('Odd', 'No such choice')`;
    const [row] = await tx<{ id: string }[]>`select write.submit() as id`;
    return row!.id;
  });
  const rows = await results(sql);
  expect(rows.map(({ operation, state }) => [operation, state])).toEqual([
    ["update", "applied"],
    ["delete", "applied"],
    ["create", "refused"],
    ["create", "applied"],
  ]);
  expect(rows[2]!.error).toContain("Insufficient permissions to create new select option");
  const made = at.inSource().find(({ Name }) => Name === "New")!;
  expect(made).toMatchObject({ Hours: 1.5, Status: "Done" });
  expect(rows[3]!.record).toBe(made.id);
  expect(names(at).toSorted()).toEqual(["New", "Task 0", "Task 2"]);
  expect(await sql`select distinct set from write.log where operation = 'delete'`).toEqual([{ set }]);
  expect(await sql`select status from tasks where name = 'Task 0'`).toEqual([{ status: "Done" }]);
});

test("a rollback, a rolled back savepoint and a failed transaction leave nothing in the outbox", async () => {
  const at = await queuedTasks();
  const sql = await at.writer();
  const admin = await asAdmin(at);
  await sql
    .begin(async (tx) => {
      await tx`delete from write.tasks`;
      throw new Error("changed my mind");
    })
    .catch(() => {});
  const failed = await errorOf(
    sql.begin(async (tx) => {
      await tx`delete from write.tasks`;
      await tx`select 1 / 0`;
    }),
  );
  expect(failed.code).toBe("22012");
  expect((await errorOf(sql`update write.tasks set loud = 'x'`)).code).toBe("428C9");
  expect(await admin`select from write_own.outbox`).toHaveLength(0);
  await sql.begin(async (tx) => {
    await tx`update write.tasks set name = 'Kept' where name = 'Task 0'`;
    await tx
      .savepoint(async (inner) => {
        await inner`delete from write.tasks`;
        throw new Error("not this");
      })
      .catch(() => {});
  });
  expect((await results(sql)).map(({ operation, state }) => [operation, state])).toEqual([
    ["update", "applied"],
  ]);
  expect(names(at)).toEqual(["Kept", "Task 1", "Task 2"]);
});

test("transactions are made in the order of their commits, and one that commits late is not lost", async () => {
  const at = await queuedTasks(1);
  const [late, sql] = [await at.writer(), await at.writer()];
  const admin = await asAdmin(at);
  // Stops the late transaction after it has its number, and before it is committed.
  await admin.unsafe(`
    create function write_own.stop() returns trigger language plpgsql security definer as $$ begin
      perform pg_advisory_xact_lock(1) where new.operations::text like '%Late%'; return null; end $$;
    create constraint trigger stop after insert on write_own.outbox deferrable initially deferred
      for each row execute function write_own.stop()`);
  await admin`select pg_advisory_lock(1)`;
  const committing = late`insert into write.tasks (name) values ('Late')`.then(() => {});
  const isWaiting = () => admin`select from pg_locks where locktype = 'advisory' and not granted`;
  await until(async () => (await isWaiting()).length > 0, { what: "the late transaction waits" });
  for (let nth = 0; nth < 30; nth++) await sql`update write.tasks set hours = ${nth} where name = 'Task 0'`;
  await results(sql);
  expect(at.inSource()[0]!.Hours).toBe(29);
  expect(names(at)).toEqual(["Task 0"]);
  await admin`select pg_advisory_unlock(1)`;
  await committing;
  expect((await results(late)).map(({ state }) => state)).toEqual(["applied"]);
  expect(names(at)).toEqual(["Task 0", "Late"]);
  const numbers = await admin<{ late: boolean }[]>`
    select role = ${late.role} as late from write_own.outbox order by nth`;
  expect(numbers[0]).toEqual({ late: true });
});

test("a transaction that is read again after its set was stored is made once", async () => {
  const at = await queuedTasks(0);
  const sql = await at.writer();
  const admin = await asAdmin(at);
  const release = await holdTaking(admin);
  await sql`insert into write.tasks (name) values ('One'), ('Two')`;
  await until(() => at.inSource().length === 2, { what: "Airtable has them" });
  await using another = await stack.startAnother();
  expect(another.endpoint).toContain("http");
  expect(await sql`select distinct state from write.log`).toEqual([{ state: "queued" }]);
  await release();
  await admin`notify basetide_outbox`;
  expect((await results(sql)).map(({ state }) => state)).toEqual(["applied", "applied"]);
  expect(names(at)).toEqual(["One", "Two"]);
});

test("I8: a writer can neither read the outbox nor write to it, and sees its own rows alone in the log", async () => {
  const at = await queuedTasks();
  const sql = await at.writer({ tables: ["people"] });
  await sql`insert into write.people (name) values ('Ada')`;
  for (const statement of [
    "insert into write.tasks (name) values ('x')",
    "select * from write_own.outbox",
    "insert into write_own.outbox (set_id) values ('x')",
    "delete from write_own.outbox",
    "select * from write_own.intents",
    "select write_own.enqueue('[]', 'x')",
    "select write_own.new_set_id()",
  ]) {
    expect([statement, (await errorOf(sql.unsafe(statement))).code]).toEqual([statement, "42501"]);
  }
  const other = await at.writer();
  expect(await other`select * from write.log`).toEqual([]);
  expect(await results(sql)).toHaveLength(1);
});

test("at once is refused, in the session and for a user, with the remedy", async () => {
  const at = await queuedTasks();
  const sql = await at.writer();
  await sql`set basetide.writes = 'at_once'`;
  expect(await errorOf(sql`insert into write.tasks (name) values ('x')`)).toMatchObject({
    code: "0A000",
    hint: expect.stringContaining("at_commit"),
  });
  await expect(at.writer({ mode: "at_once" })).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("at_commit"),
  });
});

test("a value that Airtable cannot have is refused in the log, and the rows beside it are made", async () => {
  const at = await queuedTasks(0);
  const sql = await at.writer();
  await sql`insert into write.tasks (name, took) values ('Fits', '1:30:00'), ('Unfit', '1 day')`;
  expect((await results(sql)).map(({ state, error }) => [state, error])).toEqual([
    ["applied", ""],
    ["refused", '"1 day" is not a duration like 1:30:00'],
  ]);
  expect(names(at)).toEqual(["Fits"]);
});

test("what can wait is limited, and the limit is an error of the transaction", async () => {
  const at = await queuedTasks(0);
  const sql = await at.writer();
  const admin = await asAdmin(at);
  expect(
    (await errorOf(sql`insert into write.tasks (name) select n::text from generate_series(1, 10001) as n`))
      .code,
  ).toBe("54000");
  expect(
    (
      await errorOf(
        sql`insert into write.tasks (name) select repeat('x', 80000) from generate_series(1, 430)`,
      )
    ).code,
  ).toBe("54000");
  await stack.ctx.db`update bases set has_outbox = false where id = ${at.base.id}`;
  await stack.ctx.db`select pg_notify('basetide_outboxes', '')`;
  const isRead = () =>
    admin`select from pg_stat_activity where query ilike 'listen%' and datname = current_database()`;
  await until(async () => (await isRead()).length === 0, { what: "no proxy reads the outbox" });
  await sql`insert into write.tasks (name) select n::text from generate_series(1, 10000) as n`;
  expect(await errorOf(sql`insert into write.tasks (name) values ('one more')`)).toMatchObject({
    code: "53400",
    message: "10000 rows wait already for Basetide: nothing was written",
  });
  const { writes } = await listAllWrites(stack.ctx, await getBase(stack.ctx.db, at.base.id), 10);
  expect(writes.map(({ state, operation }) => [state, operation])).toEqual(
    Array(10).fill(["queued", "create"]),
  );
});

test("while as many change sets of the base wait as may, transactions stay in the outbox, and are taken later", async () => {
  const at = await queuedTasks(0);
  const sql = await at.writer();
  const admin = await asAdmin(at);
  await stack.ctx.db`
    insert into change_sets (id, base_id, state, decided_at, holder, held_until)
    select 'chs_' || n, ${at.base.id}, 'running', now(), 'nobody', now() + interval '1 hour' from generate_series(1, 100) as n`;
  await sql`insert into write.tasks (name) values ('One')`;
  const [{ now } = { now: new Date() }] = await admin<{ now: Date }[]>`select clock_timestamp() as now`;
  const isRead = () => admin`
    select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
      and query like '%outbox%taken%' and query_start > ${now}`;
  await until(async () => (await isRead()).length > 0, { what: "the outbox has been read" });
  expect(await admin`select state from write_own.outbox`).toEqual([{ state: "queued" }]);
  await stack.ctx.db`delete from change_sets where holder = 'nobody'`;
  expect((await results(sql)).map(({ state }) => state)).toEqual(["applied"]);
  expect(names(at)).toEqual(["One"]);
});

test("turning the setting off answers what waits as not applied; a transaction that is older than a day is, too", async () => {
  const at = await queuedTasks();
  const sql = await at.writer();
  const admin = await asAdmin(at);
  // Nothing can be stored meanwhile.
  await stack.ctx.db`update bases set state = 'moving' where id = ${at.base.id}`;
  await sql`delete from write.tasks where name = 'Task 1'`;
  await admin`update write_own.outbox set at = at - interval '25 hours'`;
  await sql`delete from write.tasks where name = 'Task 0'`;
  await stack.ctx.db`update bases set state = 'active' where id = ${at.base.id}`;
  // The old one is answered; what waits behind it is, once the setting is off.
  const held = await stack.ctx.db.reserve();
  await held`begin`;
  await held`lock table change_sets in share mode`;
  const off = updateSettings(stack.managed, await getBase(stack.ctx.db, at.base.id), { sqlWrites: false });
  await off;
  await held`commit`;
  held.release();
  const rows = await results(sql);
  expect(rows.map(({ state }) => state).toSorted()).toEqual(["not_applied", "not_applied"]);
  expect(rows.map(({ error }) => error).toSorted()).toEqual([
    "Not sent for a day",
    "Writes with SQL were turned off before it was sent",
  ]);
  expect(names(at)).toEqual(["Task 0", "Task 1", "Task 2"]);
  await updateSettings(stack.managed, await getBase(stack.ctx.db, at.base.id), { sqlWrites: true });
  await sql`delete from write.tasks where name = 'Task 2'`;
  await until(() => at.inSource().length === 2, { what: "the next one is made" });
});

test("a base changes from queued writes to others: what waits is made, and its outbox is left", async () => {
  await using own = await writeStack();
  const at = await queuedTasks(0, own);
  const sql = await at.writer();
  await own.ctx.db`update bases set state = 'moving' where id = ${at.base.id}`;
  await sql`insert into write.tasks (name) values ('Queued')`;
  await own.ctx.db`update bases set state = 'active' where id = ${at.base.id}`;
  await updateSettings(own.managed, await getBase(own.ctx.db, at.base.id), { sqlWritesQueued: false });
  await sql`insert into write.tasks (name) values ('At commit')`;
  expect(names(at)).toContain("At commit");
  await until(() => at.inSource().length === 2, { what: "the one that waited is made" });
  expect((await results(sql)).map(({ state }) => state)).toEqual(["applied", "applied"]);
});

test("an outbox is open while its database queues writes, whatever has become of the change of settings", async () => {
  await using own = await writeStack();
  const at = await writableTasks(own, 0);
  const target = await replicaTarget(own.ctx, at.base);
  await installWrites(target, "queued");
  const stop = new AbortController();
  const outbox = await openOutbox(target, () => {}, stop.signal);
  expect(await outbox.isOpen()).toBe(true);
  const settings = { sqlWrites: true, sqlWritesQueued: false };
  await switchSqlWrites(own.ctx, at.base, target, settings);
  expect(await outbox.isOpen()).toBe(false);
  await installWrites(target, "queued");
  await switchSqlWrites(own.ctx, at.base, target, { ...settings, sqlWrites: false });
  expect(await outbox.isOpen()).toBe(false);
  stop.abort();
});

test("a database that was restored from a dump, in which all has other OIDs, writes what its rows say", async () => {
  const at = await queuedTasks(0);
  const sql = await at.writer();
  const admin = await asAdmin(at);
  await admin`update public_swap._write_views set view = view::bigint + 1000000`;
  await admin`update public_swap._state set incarnation = 'before the dump'`;
  await admin`select public_swap.read_version()`;
  await admin`select public_swap.apply_link_views(null, null)`;
  await sql`insert into write.tasks (name) values ('Restored')`;
  await until(() => at.inSource().length === 1, { what: "it is made" });
  expect(names(at)).toEqual(["Restored"]);
});

test("a base that moves to another cluster takes along what waits, and each transaction is made once", async () => {
  const at = await queuedTasks(0);
  const sql = await at.writer();
  const { ctx } = stack;
  await addCluster(ctx, { name: "second", region: "eu-west-1", adminUrl: inject("clusterUrl") });
  const release = await holdTaking(await asAdmin(at));
  await sql`insert into write.tasks (name) values ('Stored')`;
  await until(() => at.inSource().length === 1, { what: "its set is made, and not recorded as taken" });
  await ctx.db`update bases set has_outbox = false where id = ${at.base.id}`;
  await sql`insert into write.tasks (name) values ('Waits')`;
  await release();
  const mover = { ...stack.managed, limiter: createRateLimiter(ctx) };
  const isDue = async () =>
    (await ctx.db`select from bases where id = ${at.base.id} and sql_writes_installed is null`).length === 1;
  let moving: Promise<Base> | undefined;
  await sql.begin(async (tx) => {
    await tx`select from write.tasks`;
    moving = moveBase(mover, at.base.id, "second", { signal: new AbortController().signal, graceMs: 1 });
    // Before the views are dropped, for which it waits for this transaction.
    await until(isDue, { what: "it is recorded that the views may be gone", timeoutMs: 20_000 });
  });
  const moved = await moving!;
  expect(await isDue()).toBe(false);
  expect(moved.database.id).not.toBe(at.base.database.id);
  await until(() => names(at).includes("Waits"), { what: "what waited is made" });
  const admin = await asAdmin({ ...at, base: moved });
  const open = () => admin`select from write_own.outbox where state <> 'ended'`;
  await until(async () => (await open()).length === 0, { what: "all have results" });
  expect(names(at)).toEqual(["Stored", "Waits"]);
});

test.each([true, false])(
  "a base that an interrupted move has left without SQL writes gets them again (queued: %s)",
  async (isQueued) => {
    await using own = await writeStack();
    const at = await writableTasks(own, 0, { isQueued });
    const sql = await at.writer();
    const admin = await asAdmin(at, own);
    await removeWrites(await replicaTarget(own.ctx, at.base));
    await admin`update write_own.endpoint set connection = 'host=nowhere.invalid'`;
    expect((await errorOf(sql`insert into write.tasks (name) values ('x')`)).code).toBe("42P01");
    await own.ctx.db`update bases set sql_writes_installed = null where id = ${at.base.id}`;
    await finishSqlWrites(own.ctx);
    await sql`insert into write.tasks (name) values ('Again')`;
    await until(() => at.inSource().length === 1, { what: "it is made" });
    expect(await own.ctx.db`select from bases where sql_writes_installed is null`).toHaveLength(0);
  },
);

test("the replicas of all bases get the endpoint's new address and a new version of SQL writes, those of a later one stay", async () => {
  await using own = await writeStack();
  const at = await writableTasks(own, 0);
  const admin = await asAdmin(at, own);
  const address = async () =>
    /host=\S+/.exec((await admin`select connection from write_own.endpoint`)[0]!.connection)?.[0];
  const hosts = ["host=localhost", "host=127.0.0.1"];
  const finish = (writeHost: string) =>
    finishSqlWrites({ ...own.ctx, config: { ...own.ctx.config, writeHost } });
  expect(await address()).toBe(hosts[0]);
  await finish("127.0.0.1");
  expect(await address()).toBe(hosts[1]);
  await own.ctx.db`update bases set sql_writes_installed = '0 of another version'`;
  await admin`update write_own.endpoint set connection = 'host=nowhere.invalid'`;
  await finish("127.0.0.1");
  expect(await address()).toBe(hosts[1]);
  await own.ctx.db`update bases set sql_writes_installed = '999 of a console that is updated already'`;
  await finish("localhost");
  expect(await address()).toBe(hosts[1]);
});

test("files that several transactions add to one cell are all there", async () => {
  const at = await queuedTasks(1);
  const sql = await at.writer();
  const [{ id } = { id: "" }] = at.inSource();
  for (const name of ["a", "b", "c"])
    await sql`select write.attach('tasks', ${id}, 'files', ${`https://files.example/${name}.txt`})`;
  expect((await results(sql)).map(({ state }) => state)).toEqual(["applied", "applied", "applied"]);
  const files = at.inSource()[0]!.Files as { filename: string }[];
  expect(files.map(({ filename }) => filename)).toEqual(["a.txt", "b.txt", "c.txt"]);
});

test.each(["after", "before"] as const)(
  "a file is added once where Airtable does not answer (%s it had an effect)",
  async (when) => {
    const at = await queuedTasks(1);
    const sql = await at.writer();
    const [{ id } = { id: "" }] = at.inSource();
    stack.sandbox.control.updateRecords(at.sourceBaseId, "Tasks", [
      { id, fields: { Files: [{ url: "https://files.example/a.txt" }] } },
    ]);
    stack.sandbox.control.addFault({ kind: "reset", count: 1, base: at.sourceBaseId, when, method: "PATCH" });
    await sql`select write.attach('tasks', ${id}, 'files', 'https://files.example/b.txt')`;
    expect((await results(sql)).map(({ state }) => state)).toEqual(["applied"]);
    const files = at.inSource()[0]!.Files as { filename: string }[];
    expect(files.map(({ filename }) => filename)).toEqual(["a.txt", "b.txt"]);
  },
);

test("a row that a transaction changes twice is not refused for its own first change", async () => {
  const at = await queuedTasks(1);
  const sql = await at.writer();
  await sql.begin(async (tx) => {
    await tx`set local basetide."check" = 'row'`;
    await tx`update write.tasks set hours = 7`;
    await tx`update write.tasks set status = 'Done'`;
  });
  expect(await results(sql)).toMatchObject([
    { state: "applied", error: "" },
    { state: "applied", error: "" },
  ]);
});

test("files that a cell has are kept, also where Airtable cannot be asked at first", async () => {
  const at = await queuedTasks(1);
  const sql = await at.writer();
  const [{ id } = { id: "" }] = at.inSource();
  const files = () =>
    ((at.inSource()[0]!.Files ?? []) as { filename: string }[]).map(({ filename }) => filename);
  await sql`select write.attach('tasks', ${id}, 'files', 'https://files.example/a.txt')`;
  await until(() => files().length === 1, { what: "the first file is there" });
  await until(async () => (await sql`select from tasks where files is not null`).length === 1, {
    what: "SQL has it",
  });
  stack.sandbox.control.addFault({ kind: "status_503", count: 1, base: at.sourceBaseId, method: "GET" });
  await sql`select write.attach('tasks', ${id}, 'files', 'https://files.example/b.txt')`;
  await until(() => files().length === 2, { what: "the second file is there", timeoutMs: 20_000 });
  expect(files()).toEqual(["a.txt", "b.txt"]);
});
