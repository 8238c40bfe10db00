/** Connections to a read-only server: none stays open, in either driver. */
import pg from "pg";
import postgres from "postgres";
import { expect, test } from "vitest";
import {
  asControlError,
  connectControl,
  isConnectionError,
  pgOptions,
  requireWritable,
} from "../../../core/postgres";
import { connectReplica } from "../../../core/replica";
import { replicaError } from "../../../core/replica/connection";
import { freshDatabase, type TestDatabase } from "../../support/database";
import { until } from "../../support/poll";
import { postgresPair } from "../../support/postgres-pair";

const DEADLINE = { timeoutMs: 30_000 };

/** The server processes of our connections to a database, without the one of this query. */
async function backends({ sql }: TestDatabase): Promise<number[]> {
  const rows = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and application_name in ('basetide', 'queue') order by pid`;
  return rows.map(({ pid }) => pid);
}

async function areGone(database: TestDatabase, pids: number[]): Promise<boolean> {
  const there = await backends(database);
  return pids.every((pid) => !there.includes(pid));
}

test("the first refused write closes all connections of its pool, and LISTEN is resumed", async () => {
  await using database = await freshDatabase();
  const db = connectControl(database.url, { max: 3 });
  const heard: string[] = [];
  let listening = 0;
  await db.listen(
    "news",
    (payload) => void heard.push(payload),
    () => void listening++,
  );
  await Promise.all([1, 2, 3].map(() => db`select pg_sleep(0.2)`));
  const pids = await backends(database);
  expect(pids).toHaveLength(4);
  // In progress on another connection of the pool: it is not interrupted.
  const slow = db`select pg_sleep(0.5), 'done' as state`.then(([row]) => row!.state);
  const error = await db.begin("read only", (tx) => tx`create table t ()`).catch((caught) => caught);
  expect(error).toMatchObject({ code: "25006" });
  expect(asControlError(error).code).toBe("control_unavailable");
  expect(replicaError(error).code).toBe("replica_unavailable");
  expect(await slow).toBe("done");
  await until(() => areGone(database, pids), { what: "the old connections are closed", ...DEADLINE });
  await until(() => listening === 2, { what: "it listens again", ...DEADLINE });
  await db.notify("news", "later");
  await until(() => heard.includes("later"), { what: "a notification arrives", ...DEADLINE });
  await Promise.all([1, 2, 3].map(() => db`select pg_sleep(0.2)`));
  expect(await backends(database)).toHaveLength(4);
  await db.end({ timeout: 1 });
});

test("the queue's driver closes all connections of its pool at the first refused write", async () => {
  await using database = await freshDatabase();
  const pool = new pg.Pool({
    ...(await pgOptions(database.url)),
    application_name: "queue",
    max: 3,
  });
  const errors: Error[] = [];
  pool.on("error", (error) => errors.push(error));
  await Promise.all([1, 2, 3].map(() => pool.query("select pg_sleep(0.2)")));
  const pids = await backends(database);
  expect(pids).toHaveLength(3);
  const error = await pool.query("begin read only; create table t ()").catch((caught) => caught);
  expect(error).toMatchObject({ code: "25006" });
  await until(() => areGone(database, pids), { what: "the old connections are closed", ...DEADLINE });
  expect(errors.every(isConnectionError)).toBe(true);
  expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  await pool.end();
});

test("a standby is refused at login by both drivers, until the name leads to the new primary", {
  timeout: 180_000,
}, async () => {
  await using pair = await postgresPair({ isSynchronous: false });
  const db = connectControl(pair.url, { max: 2 });
  const replica = connectReplica(pair.url);
  const pool = new pg.Pool({ ...(await pgOptions(pair.url)), max: 2 });
  pool.on("error", () => {});
  await db`create table counted (number integer)`;
  await Promise.all([replica`select 1`, pool.query("select 1")]);
  await requireWritable(db);
  const move = await pair.switchOver();
  const direct = postgres(pair.url, { max: 1 });
  await until(async () => (await direct`select pg_is_in_recovery() as is`)[0]!.is, {
    what: "the old primary answers as a standby",
    retryErrors: true,
    ...DEADLINE,
  });
  const codes = async () => {
    const tries = [db`select 1`, replica`select 1`, pool.query("select 1")];
    return Promise.all(
      tries.map((one) =>
        Promise.resolve(one).then(
          () => "served",
          (error) => error.code,
        ),
      ),
    );
  };
  await until(async () => (await codes()).every((code) => code === "25006"), {
    what: "no read is served by the standby",
    ...DEADLINE,
  });
  await expect(
    requireWritable(db).catch((error) => Promise.reject(asControlError(error))),
  ).rejects.toMatchObject({
    code: "control_unavailable",
    message: expect.stringContaining("accepts no writes"),
  });
  move();
  await until(() => db`insert into counted values (1)`.then(() => true), {
    what: "the new primary accepts writes",
    retryErrors: true,
    ...DEADLINE,
  });
  await requireWritable(db);
  await replica`insert into public.counted values (2)`;
  await pool.query("insert into counted values (3)");
  await Promise.all([
    db.end({ timeout: 1 }),
    replica.end({ timeout: 1 }),
    direct.end({ timeout: 1 }),
    pool.end(),
  ]);
});
