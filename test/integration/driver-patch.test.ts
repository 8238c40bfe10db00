/** What `patches/` mends in postgres.js: servers that go away, seen from a process that has nothing else. */
import postgres from "postgres";
import { expect, inject, test } from "vitest";
import { cuttableLine } from "../support/cuttable-line";
import { startProgram } from "../support/program";

test("a server that goes away in a transaction breaks that transaction, and nothing else of the process", async () => {
  await using program = startProgram("test/support/cut-off-transaction.ts", [inject("postgresUrl")]);
  await program.says("\n");
  expect(JSON.parse(program.output())).toEqual({
    // What is patched is what Bun loads; the package has other builds of the same.
    driver: expect.stringMatching(/\/postgres\/src\/index\.js$/),
    transaction: "CONNECTION_CLOSED",
    statement: "CONNECTION_CLOSED",
    afterwards: "ok",
    atLast: "ok",
    thrown: [],
  });
});

test("a query called off before its connection was there leaves the connection to others", async () => {
  await using line = await cuttableLine(inject("postgresUrl"));
  const sql = postgres(line.url, { max: 1, fetch_types: false, backoff: () => 0.03 });
  try {
    line.cut();
    const first = sql`select 1`;
    const code = first.then(
      () => "ok",
      (error: { code?: string }) => error.code,
    );
    // Lets the query take the pool's one connection, which is then on its way.
    await new Promise((resolve) => setImmediate(resolve));
    first.cancel();
    expect(await code).toBe("57014");
    line.mend();
    expect([...(await sql`select 2 as two`)]).toEqual([{ two: 2 }]);
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test("a connection of one's own is had from a pool that has none yet", async () => {
  const sql = postgres(inject("postgresUrl"), { max: 1, fetch_types: false });
  try {
    const own = await sql.reserve();
    expect([...(await own`select 3 as three`)]).toEqual([{ three: 3 }]);
    own.release();
  } finally {
    await sql.end({ timeout: 1 });
  }
});
