import postgres from "postgres";
import { expect, test } from "vitest";
import { until } from "../../support/poll";
import { postgresPair } from "../../support/postgres-pair";

const options = { max: 1, onnotice: () => {}, backoff: () => 0.1, connect_timeout: 5 };

test("a promoted standby has everything that a synchronous primary has answered, and the endpoint leads to it", async () => {
  await using pair = await postgresPair({ isSynchronous: true });
  const sql = postgres(pair.url, options);
  try {
    await sql`create table counted (number integer)`;
    for (let number = 0; number < 20; number++) await sql`insert into counted values (${number})`;
    await pair.failOver();
    const rows = await until(() => sql`select number from counted`, {
      what: "the new primary answers",
      timeoutMs: 30_000,
      retryErrors: true,
    });
    expect(rows).toHaveLength(20);
    // This is how the quota ledger detects that permits may be missing.
    const [row] = await sql<{ is: boolean }[]>`select pg_last_xact_replay_timestamp() is not null as is`;
    expect(row!.is).toBe(true);
    await sql`insert into counted values (20)`;
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test("a promotion loses only what an asynchronous standby did not have yet", async () => {
  await using pair = await postgresPair({ isSynchronous: false });
  const sql = postgres(pair.url, options);
  try {
    await sql`create table counted (number integer)`;
    await sql`insert into counted values (1)`;
    await pair.standby!.caughtUp();
    pair.standby!.replication.cut();
    await sql`insert into counted values (2)`;
    await pair.failOver();
    const rows = await until(() => sql<{ number: number }[]>`select number from counted`, {
      what: "the new primary answers",
      timeoutMs: 30_000,
      retryErrors: true,
    });
    expect(rows.map(({ number }) => number)).toEqual([1]);
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test("after a switchover the endpoint leads to a read-only server until it moves", async () => {
  await using pair = await postgresPair({ isSynchronous: false });
  const before = postgres(pair.url, options);
  const after = postgres(pair.url, options);
  try {
    await before`create table counted (number integer)`;
    const move = await pair.switchOver();
    const isRefused = async () =>
      (await before`insert into counted values (1)`.catch((error) => error))?.code;
    await until(async () => (await isRefused()) === "25006", {
      what: "the old primary is read-only",
      timeoutMs: 30_000,
      retryErrors: true,
    });
    move();
    await after`insert into counted values (2)`;
    // Existing connections stay with the old one.
    expect(await isRefused()).toBe("25006");
  } finally {
    await Promise.all([before, after].map((sql) => sql.end({ timeout: 1 })));
  }
});
