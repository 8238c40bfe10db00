/** SQL writes and their records: a call is prepared while its set is recorded, and never sent before. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { getBase, updateSettings } from "../../../core/control/bases";
import { errorOf } from "../../support/error-of";
import { until } from "../../support/poll";
import type { ProxyStack } from "../../support/proxy-stack";
import { writableTasks, writeStack } from "../../support/sql-writes";

let stack: ProxyStack;

beforeAll(async () => {
  stack = await writeStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

type Scene = Awaited<ReturnType<typeof writableTasks>>;

/** Calls that wrote tasks; a sync lists records with POST, too. */
const writes = (at: Scene) => at.calls().filter(({ path }) => !path.includes("listRecords"));
const names = (at: Scene) => at.inSource().map(({ Name }) => Name as string);

/** Lets no change set be recorded until the result is called. */
async function holdRecords(): Promise<() => Promise<void>> {
  const { db } = stack.ctx;
  // A session's next write waits for the end of its last one to be recorded.
  const isEnded = async () => (await db`select from change_sets where ended_at is null`).length === 0;
  await until(isEnded, { what: "earlier writes are recorded" });
  const { promise, resolve } = Promise.withResolvers<void>();
  const isLocked = Promise.withResolvers<void>();
  const locking = db.begin(async (tx) => {
    await tx`lock table change_sets in share row exclusive mode`;
    isLocked.resolve();
    await promise;
  });
  await isLocked.promise;
  const end = async () => {
    resolve();
    await locking;
  };
  onTestFinished(end);
  return end;
}

const isRecording = () =>
  until(
    async () =>
      (
        await stack.ctx.db`
          select from pg_stat_activity where wait_event_type = 'Lock' and query like '%insert into change_sets%'`
      ).length > 0,
    { what: "a set waits for being recorded" },
  );

/** Writes over HTTP with the base's own key. */
const post = async (at: Scene, name: string) => {
  const response = await fetch(`${stack.endpoint}/v0/${at.sourceBaseId}/Tasks`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    body: JSON.stringify({ records: [{ fields: { Name: name } }] }),
  });
  expect(response.status).toBe(200);
};

test.each([false, true])(
  "nothing is sent before it is recorded, and no other write waits for that (coalesced: %s)",
  async (coalesceWrites) => {
    const at = await writableTasks(stack, 0);
    await updateSettings(stack.managed, at.base, { coalesceWrites });
    const sql = await at.writer();
    // From now on, the proxy knows where writes of this base go.
    await sql`insert into write.tasks (name) values ('First')`;
    const end = await holdRecords();
    const writing = sql`insert into write.tasks (name) values ('Second')`.execute();
    writing.catch(() => {});
    await isRecording();
    await post(at, "Third");
    await post(at, "Fourth");
    expect(names(at)).toEqual(["First", "Third", "Fourth"]);
    await end();
    await writing;
    expect(names(at)).toEqual(["First", "Third", "Fourth", "Second"]);
    expect(await sql`select name from tasks where name = 'Second'`).toHaveLength(1);
  },
);

test("a set that is recorded late is sent once", async () => {
  const at = await writableTasks(stack, 0);
  const sql = await at.writer();
  await sql`insert into write.tasks (name) values ('First')`;
  const end = await holdRecords();
  const writing = sql`insert into write.tasks (name) values ('Second')`.execute();
  writing.catch(() => {});
  await isRecording();
  const from = performance.now();
  await until(() => performance.now() - from > 1500, { what: "the call is no longer prepared" });
  await end();
  await writing;
  expect(names(at)).toEqual(["First", "Second"]);
  expect(await sql`select state from write.log`).toEqual([{ state: "applied" }, { state: "applied" }]);
});

test("what cannot be recorded is not sent", async () => {
  const at = await writableTasks(stack, 0);
  const sql = await at.writer();
  await sql`insert into write.tasks (name) values ('First')`;
  const { db } = stack.ctx;
  await db.unsafe(`
    create function refuse_set() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
    create trigger refuse_set before insert on change_sets for each row
      when (new.base_id = '${at.base.id}') execute function refuse_set()`);
  try {
    expect((await errorOf(sql`insert into write.tasks (name) values ('Second')`)).code).toBe("08006");
  } finally {
    await db.unsafe("drop function refuse_set cascade");
  }
  await db`update bases set sql_writes = false where id = ${at.base.id}`;
  expect((await errorOf(sql`insert into write.tasks (name) values ('Third')`)).code).toBe("55000");
  expect(writes(at)).toHaveLength(1);
  await db`update bases set sql_writes = true where id = ${at.base.id}`;
  await sql`insert into write.tasks (name) values ('Fourth')`;
  expect(names(at)).toEqual(["First", "Fourth"]);
});

test("after the base gets another key, its writes are sent once, with that key", async () => {
  const { control } = stack.sandbox;
  const at = await writableTasks(stack, 0);
  const sql = await at.writer();
  await sql`insert into write.tasks (name) values ('First')`;
  const key = control.createKey();
  await updateSettings(stack.managed, at.base, { apiKey: key });
  await sql`insert into write.tasks (name) values ('Second')`;
  await sql`insert into write.tasks (name) values ('Third')`;
  expect(names(at)).toEqual(["First", "Second", "Third"]);
  const [first, second, third] = writes(at).map(({ tokenId }) => tokenId);
  expect(second).not.toBe(first);
  expect(third).toBe(second);
  expect(writes(at)).toHaveLength(3);
});

test("what waits because its key is rejected is made with the key that replaces it", async () => {
  const { control } = stack.sandbox;
  const at = await writableTasks(stack, 0);
  const old = control.createKey();
  await updateSettings(stack.managed, at.base, { apiKey: old });
  const sql = await at.writer();
  control.revokeKey(old);
  await sql.begin(async (tx) => {
    await tx`insert into write.tasks (name) values ('Once')`;
    await tx`select write.submit()`;
  });
  const waits = async () =>
    (await stack.ctx.db`select from change_sets where base_id = ${at.base.id} and problem <> ''`).length > 0;
  await until(waits, { what: "it waits", timeoutMs: 20_000 });
  const base = await getBase(stack.ctx.db, at.base.id);
  await updateSettings(stack.managed, base, { apiKey: control.createKey() });
  await until(() => names(at).length === 1, { what: "it is made", timeoutMs: 40_000 });
  expect(names(at)).toEqual(["Once"]);
});
