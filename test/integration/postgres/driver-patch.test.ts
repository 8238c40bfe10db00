/** What `patches/` repairs in postgres.js: servers that disappear, seen from a process that does nothing else. */
import net from "node:net";
import postgres from "postgres";
import { expect, inject, test } from "vitest";
import { asAdmin } from "../../support/admin";
import { cuttableProxy } from "../../support/cuttable-proxy";
import { freshDatabase } from "../../support/database";
import { until } from "../../support/poll";
import { startProgram } from "../../support/program";

test("a server that disappears during a transaction breaks that transaction, and nothing else in the process", async () => {
  await using program = startProgram("test/support/cut-off-transaction.ts", [inject("postgresUrl")]);
  await program.says("\n");
  expect(JSON.parse(program.output())).toEqual({
    // The patch applies to the build that Bun loads; the package has other builds of the same code.
    driver: expect.stringMatching(/\/postgres\/src\/index\.js$/),
    transaction: "CONNECTION_CLOSED",
    statement: "CONNECTION_CLOSED",
    afterwards: "ok",
    atLast: "ok",
    thrown: [],
  });
});

test("a session that the server has ended gets no further query, although its connection has not closed yet", async () => {
  const { hostname, port } = new URL(inject("postgresUrl"));
  // Passes on what the server says, but not that it has closed the connection: that follows the answer to the next message.
  const line = net.createServer({ allowHalfOpen: true }, (client) => {
    const server = net.connect({ host: hostname, port: Number(port) }).on("error", () => {});
    server.on("data", (answer) => client.write(answer));
    client.on("error", () => {}).on("end", () => client.end());
    client.on(
      "data",
      (message) => void (server.readyState === "open" ? server.write(message) : client.destroy()),
    );
  });
  await new Promise<void>((resolve) => void line.listen(0, "127.0.0.1", resolve));
  const url = Object.assign(new URL(inject("postgresUrl")), {
    host: `127.0.0.1:${(line.address() as net.AddressInfo).port}`,
  }).href;
  const ended = Promise.withResolvers<{ code?: string }>();
  const options = { max: 1, fetch_types: false, backoff: () => 0.03, onservererror: ended.resolve };
  const sql = postgres(url, options as postgres.Options<Record<never, never>>);
  try {
    const [first] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    await asAdmin((admin) => admin`select pg_terminate_backend(${first!.pid}, 10000)`);
    expect((await ended.promise).code).toBe("57P01");
    const [second] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    expect(second!.pid).not.toBe(first!.pid);
  } finally {
    await sql.end({ timeout: 1 });
    line.close();
  }
});

test("a query canceled before its connection was open leaves the connection to others", async () => {
  await using line = await cuttableProxy(inject("postgresUrl"));
  const sql = postgres(line.url, { max: 1, fetch_types: false, backoff: () => 0.03 });
  try {
    line.cut();
    const first = sql`select 1`;
    const code = first.then(
      () => "ok",
      (error: { code?: string }) => error.code,
    );
    // Lets the query take the pool's one connection, which is then being opened.
    await new Promise((resolve) => setImmediate(resolve));
    first.cancel();
    expect(await code).toBe("57014");
    line.restore();
    expect([...(await sql`select 2 as two`)]).toEqual([{ two: 2 }]);
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test("a query that cannot be canceled, as no further connection can be opened, is answered, and breaks nothing", async () => {
  await using program = startProgram("test/support/cancel-in-vain.ts", [inject("postgresUrl")]);
  await program.says("\n");
  expect(JSON.parse(program.output())).toEqual({ answer: "ok", unhandled: [] });
});

test("a query canceled while it waits behind others on its connection leaves each its own answer", async () => {
  const sql = postgres(inject("postgresUrl"), { max: 1, fetch_types: false });
  try {
    await sql`select 1`;
    const first = sql`select pg_sleep(0.2)`.execute();
    const second = sql`select 2 as two`.execute();
    const third = sql`select 3 as three`.execute();
    // Lets all three take the pool's one connection.
    await new Promise((resolve) => setImmediate(resolve));
    second.cancel();
    await first;
    expect([...(await second)]).toEqual([{ two: 2 }]);
    expect([...(await third)]).toEqual([{ three: 3 }]);
    expect([...(await sql`select 4 as four`)]).toEqual([{ four: 4 }]);
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test.each([
  ["22012", "1 / (40 - i)"],
  ["CONNECTION_CLOSED", "case i when 40 then pg_terminate_backend(pg_backend_pid()) end"],
])(
  "a query that fails with %s after its first rows leaves later ones on its connection their own rows",
  async (code, value) => {
    const sql = postgres(inject("postgresUrl"), { max: 1, fetch_types: false, backoff: () => 0.03 });
    // The server sends most rows of this size before it computes the last.
    const failing = `select repeat('x', 20000), ${value} from generate_series(1, 50) i`;
    try {
      // The second one waits for the first one's connection.
      const [failed, next] = [sql.unsafe(failing), sql`select 7 as seven`].map((query) => query.execute());
      await expect(failed).rejects.toMatchObject({ code });
      expect([...(await next!)]).toEqual([{ seven: 7 }]);
      await expect(sql.unsafe(failing)).rejects.toMatchObject({ code });
      const counts = (await sql.unsafe("select 8; select 9 union all select 10")).map((rows) => rows.length);
      expect(counts).toEqual([1, 2]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  },
);

test("every query is answered correctly or fails while a database is removed, and so are all later ones", {
  timeout: 60_000,
}, async () => {
  for (let round = 0; round < 8; round++) {
    await using database = await freshDatabase();
    const { url } = database;
    const sql = postgres(url, { max: 3, backoff: () => 0.03, onnotice: () => {} });
    const failed = new Set<unknown>();
    let asked = 0;
    let isOver = false;
    async function askAgainAndAgain(ask: (number: number) => Promise<{ answer: number }[]>): Promise<void> {
      while (!isOver) {
        const number = asked++;
        try {
          expect([...(await ask(number))]).toEqual([{ answer: number }]);
        } catch (error) {
          if (!(error as { code?: unknown }).code) throw error;
          failed.add((error as { code: unknown }).code);
        }
      }
    }
    const all = [1, 2, 3, 4, 5, 6].map((each) =>
      askAgainAndAgain((number) =>
        each % 2 === 0
          ? sql<{ answer: number }[]>`select ${number}::int as answer`
          : sql.begin((own) => own<{ answer: number }[]>`select ${number}::int as answer`),
      ),
    );
    await until(() => asked > 50, { what: "requests are sent" });
    const name = new URL(url).pathname.slice(1);
    await asAdmin((server) => server.unsafe(`drop database ${name} with (force)`));
    await until(() => failed.has("3D000"), { what: "the loss of the database is detected" });
    const then = asked;
    await until(() => asked > then + 20, { what: "each is notified" });
    isOver = true;
    await Promise.all(all);
    await sql.end({ timeout: 1 });
  }
});

test("a query fails if its connection is accepted and closed before it is ready, and the next one is tried after a pause", async () => {
  await using line = await cuttableProxy(inject("postgresUrl"));
  const pauses: number[] = [];
  const backoff = (failures: number) => {
    pauses.push(failures);
    return 0.03;
  };
  const sql = postgres(line.url, { max: 1, backoff });
  try {
    line.cut();
    for (let i = 0; i < 3; i++)
      await expect(sql`select 1`).rejects.toMatchObject({ code: "CONNECTION_CLOSED" });
    expect(pauses.at(-1)).toBeGreaterThan(0);
    line.restore();
    expect([...(await sql`select 2 as two`)]).toEqual([{ two: 2 }]);
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test("a dedicated connection is available from a pool that has none yet", async () => {
  const sql = postgres(inject("postgresUrl"), { max: 1, fetch_types: false });
  try {
    const own = await sql.reserve();
    expect([...(await own`select 3 as three`)]).toEqual([{ three: 3 }]);
    own.release();
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test("a dedicated connection that has closed is not used again when it is released", async () => {
  const sql = postgres(inject("postgresUrl"), { max: 1, fetch_types: false, backoff: () => 0.03 });
  try {
    const own = await sql.reserve();
    const [row] = await own<{ pid: number }[]>`select pg_backend_pid() as pid`;
    await asAdmin((server) => server`select pg_terminate_backend(${row!.pid})`);
    const isClosed = () =>
      own`select 1`.then(
        () => false,
        // The server's own error arrives before the end of the connection.
        (error: { code?: string }) => error.code !== "57P01",
      );
    await until(isClosed, { what: "its end is noticed" });
    own.release();
    expect([...(await sql`select 4 as four`)]).toEqual([{ four: 4 }]);
  } finally {
    await sql.end({ timeout: 1 });
  }
});

/** The driver's options with the one of the patch. */
function poolWithSessions(
  max: number,
  onsession: (run: (text: string) => PromiseLike<unknown>) => Promise<void>,
  more: object = {},
) {
  const options = { max, fetch_types: false, backoff: () => 0.03, onnotice: () => {}, ...more, onsession };
  return postgres(inject("postgresUrl"), options as unknown as postgres.Options<Record<never, never>>);
}

test("every connection is prepared before its first query: pooled, reserved, of a transaction and listening", async () => {
  const sql = poolWithSessions(4, async (run) => {
    await run("select pg_sleep(0.02)");
    await run("set basetide.prepared = 'yes'");
  });
  const prepared = (on: postgres.Sql) => on`select current_setting('basetide.prepared', true) as is`;
  try {
    const pooled = await Promise.all(Array.from({ length: 8 }, () => prepared(sql)));
    const reserved = await sql.reserve();
    pooled.push(await prepared(reserved));
    reserved.release();
    pooled.push(await sql.begin((tx) => prepared(tx as unknown as postgres.Sql)));
    for (const [row] of pooled) expect(row).toEqual({ is: "yes" });
    const { promise: heard, resolve } = Promise.withResolvers<string>();
    await sql.listen("prepared_sessions", resolve);
    await sql.notify("prepared_sessions", "here");
    expect(await heard).toBe("here");
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test("a connection that cannot be prepared fails the queries that wait for it, and the next one is tried", async () => {
  let failures = 3;
  const sql = poolWithSessions(2, async (run) => {
    if (failures > 0) {
      failures -= 1;
      if (failures === 1) throw new Error("not today");
      await run("select no_such_column");
    }
  });
  try {
    const told: unknown[] = [];
    await until(
      async () => {
        try {
          return (await sql`select 1 as one`)[0]!.one === 1;
        } catch (error) {
          told.push((error as { code?: string }).code ?? (error as Error).message);
          return false;
        }
      },
      { what: "a connection is prepared" },
    );
    expect(told.sort()).toEqual(["42703", "42703", "not today"]);
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test("a connection that ends while it is prepared is discarded, and ends nothing else", {
  timeout: 60_000,
}, async () => {
  await using line = await cuttableProxy(inject("postgresUrl"));
  let cuts = 2;
  const options = {
    max: 1,
    fetch_types: false,
    backoff: () => 0.03,
    async onsession(run: (text: string) => PromiseLike<unknown>) {
      if (cuts-- > 0) setTimeout(() => line.cut(), 20);
      await run("select pg_sleep(0.2)");
    },
  };
  const sql = postgres(line.url, options as unknown as postgres.Options<Record<never, never>>);
  try {
    const answer = await until(
      async () => {
        line.restore();
        return sql`select 7 as seven`.catch(() => undefined);
      },
      { what: "an answer", timeoutMs: 30_000 },
    );
    expect([...answer]).toEqual([{ seven: 7 }]);
  } finally {
    await sql.end({ timeout: 1 });
  }
});
