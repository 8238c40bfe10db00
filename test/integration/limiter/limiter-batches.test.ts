/** Calls for several keys in one statement, from several connections at once, on the server's own clock. */
import fc from "fast-check";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { until } from "../../support/poll";
import { LIMITS } from "../../support/quota-limits";

// Hundreds of statements that wait for each other's locks: a machine without free CPU takes its time.
vi.setConfig({ testTimeout: 120_000 });

const CONNECTIONS = 4;
let database: TestDatabase;
let pool: postgres.Sql;
beforeAll(async () => {
  database = await controlDatabase();
  pool = postgres(database.url, { max: CONNECTIONS, onnotice: () => {}, fetch_types: false });
  // A server that has just started grants nothing for 2.35 s.
  const isOldEnough = async () => {
    const rows = await database.sql`
      select where clock_timestamp() > pg_postmaster_start_time() + interval '2.4 s'`;
    return rows.length > 0;
  };
  await until(isOldEnough, { what: "the server is old enough" });
});
afterAll(async () => {
  await pool?.end();
  await database?.[Symbol.asyncDispose]();
});

/** Times are exact to a quarter of a µs. */
const WINDOW_MS = 999.999;

interface Call {
  key: string;
  kind: "client" | "sync" | "live" | "unproven";
  calls: number;
  user: string | null;
  marginMs: number;
}

interface Row {
  reservations: (number | null)[];
  margin: number;
}

/** The reservations of each call, as the spans in which its requests reach the source. */
async function acquireAll(calls: Call[]): Promise<{ from: number; until: number }[][]> {
  const column = (of: (one: Call) => unknown) => `{${calls.map((one) => of(one) ?? "NULL")}}`;
  const rows = await pool<Row[]>`
    select to_json(reservations) as reservations, margin from quota_acquire_all(
      1000, 5, 2, 50, ${column(({ key }) => `"${key}"`)}, ${column(({ kind }) => kind)}, ${column(() => 5)},
      ${column((one) => `"{${Array(one.calls).fill(one.kind === "client" ? 300 : 10)}}"`)},
      ${column(() => '"{}"')}, ${column(({ user }) => user)}, ${column((one) => one.marginMs)},
      ${column(() => "true")}, ${column(() => 0)})`;
  expect(rows).toHaveLength(calls.length);
  return rows.map(({ reservations, margin }) =>
    reservations.flatMap((arrivesBy) =>
      arrivesBy === null ? [] : [{ from: arrivesBy - margin, until: arrivesBy }],
    ),
  );
}

test("I4: batches of overlapping keys and users, in any order and beside blocks, keep the limit without a deadlock", async () => {
  const index = fc.nat(5);
  const call = fc.record({
    index,
    kind: fc.constantFrom("client", "client", "sync", "live", "unproven" as const),
    calls: fc.integer({ min: 0, max: 3 }),
    marginMs: fc.constantFrom(20, 60, 200),
  });
  const statement = fc.oneof(
    { weight: 5, arbitrary: fc.array(call, { minLength: 1, maxLength: 8 }) },
    { weight: 1, arbitrary: index },
  );
  const lines = fc.array(fc.array(statement, { minLength: 5, maxLength: 25 }), {
    minLength: CONNECTIONS,
    maxLength: CONNECTIONS,
  });
  await fc.assert(
    fc.asyncProperty(lines, async (programs) => {
      const run = crypto.randomUUID();
      const keyOf = (of: number) => `batch:${run}:${of}`;
      const userOf = (of: number) => (of < 4 ? `${run}-${of % 2}` : null);
      const spans = new Map<string, { from: number; until: number }[]>();
      const play = async (program: (typeof programs)[number]) => {
        for (const step of program) {
          if (typeof step === "number") {
            await pool`select quota_block(${keyOf(step)}, ${LIMITS}::source_limits, 1, 'rate_limited')`;
            continue;
          }
          const calls = step.map(({ index: of, ...one }) => ({
            ...one,
            kind: one.kind as Call["kind"],
            key: keyOf(of),
            user: one.kind === "sync" || one.kind === "live" ? userOf(of) : null,
          }));
          const granted = await acquireAll(calls);
          for (const [position, { key }] of calls.entries()) {
            spans.set(key, [...(spans.get(key) ?? []), ...granted[position]!]);
          }
        }
      };
      await Promise.all(programs.map(play));
      for (const all of spans.values()) {
        const inOrder = all.toSorted((a, b) => a.until - b.until);
        for (const [position, { from }] of inOrder.entries()) {
          const fifthBefore = inOrder[position - 5];
          if (fifthBefore) expect(from - fifthBefore.until).toBeGreaterThanOrEqual(WINDOW_MS);
        }
      }
    }),
    { numRuns: 15 },
  );
});

test("each row belongs to its call: a batch grants what single calls would", async () => {
  const kinds = ["client", "sync", "unproven"] as const;
  const calls = Array.from({ length: 12 }, (_, index) => ({
    key: `row:${crypto.randomUUID()}`,
    kind: kinds[index % 3]!,
    calls: index % 7,
    user: null,
    marginMs: 20 + index,
  }));
  const together = await acquireAll(calls);
  const alone: typeof together = [];
  for (const call of calls) {
    alone.push(...(await acquireAll([{ ...call, key: `row:${crypto.randomUUID()}` }])));
  }
  const shape = (granted: typeof together) =>
    granted.map((spans) => spans.map(({ from, until: to }) => Math.round(to - from)));
  expect(shape(together)).toEqual(shape(alone));
  expect(together[6]).toHaveLength(5);
});
