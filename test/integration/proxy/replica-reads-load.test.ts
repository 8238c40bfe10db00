/** Reads that take long, or are many: they delay no write, and use no more of the server than they may. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openReplica } from "../../../core/replica";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

const FIELDS = [{ name: "Name", type: "singleLineText" }];

let stack: ProxyStack;
let base: Replicated;
let baseId: string;

beforeAll(async () => {
  stack = await proxyStack();
  const table = (name: string) => ({ name, fields: FIELDS, records: [{ fields: { Name: "one" } }] });
  baseId = stack.sandbox.control.createBase({ name: "B", tables: [table("Read"), table("Written")] });
  base = await stack.connect(baseId);
  await base.sync();
  await read("Read");
  await write();
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

const headers = () => ({
  authorization: `Bearer ${stack.sandbox.key}`,
  "content-type": "application/json",
  "x-basetide-read": "replica",
});

async function read(path: string): Promise<string | null> {
  const response = await fetch(`${stack.endpoint}/v0/${baseId}/${path}`, { headers: headers() });
  expect(response.status).toBe(200);
  return response.headers.get("x-basetide-answered-by");
}

async function write(): Promise<string | null> {
  const body = JSON.stringify({ records: [{ fields: { Name: "two" } }] });
  const response = await fetch(`${stack.endpoint}/v0/${baseId}/Written`, {
    method: "POST",
    headers: headers(),
    body,
  });
  expect(response.status).toBe(200);
  return response.headers.get("x-basetide-sql");
}

test("a write does not wait for reads that wait, and Airtable answers those", {
  timeout: 30_000,
}, async () => {
  expect(await read("Read?maxRecords=1")).toBe("replica");
  const reads: Promise<string | null>[] = [];
  await stack.withOwner(base, async (sql) => {
    await sql.begin(async (tx) => {
      await tx`lock table public.read in access exclusive mode`;
      for (let nth = 0; nth < 8; nth++) reads.push(read(`Read?maxRecords=${nth + 1}`));
      await until(
        async () => {
          const [row] = await tx`
            select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' limit 1`;
          return row !== undefined;
        },
        { what: "a read waits" },
      );
      const from = performance.now();
      expect(await write()).toBeNull();
      expect(performance.now() - from).toBeLessThan(1000);
      expect(new Set(await Promise.all(reads))).toEqual(new Set(["source"]));
    });
  });
});

test("the server ends a read that takes too long", {
  timeout: 30_000,
}, async () => {
  await stack.withOwner(base, async (sql) => {
    await sql`
      insert into public.read (id, created_time, name)
      select 'recLong' || lpad(n::text, 10, '0'), now(), repeat('x', 200000) from generate_series(1, 100) as n`;
    // What is searched for differs in its first letter only.
    const searches = Array.from(
      { length: 200 },
      (_, nth) => `FIND('y${"x".repeat(20 + (nth % 9))}', {Name})`,
    );
    const formula = encodeURIComponent(`OR(${searches.join(", ")})`);
    const running = () => sql`
      select from pg_stat_activity where datname = current_database() and state = 'active' and query like '%strpos%'
        and pid <> pg_backend_pid()`;
    const reading = read(`Read?maxRecords=1&filterByFormula=${formula}`);
    await until(async () => (await running()).length > 0, { what: "it runs" });
    expect(await reading).toBe("source");
    await until(async () => (await running()).length === 0, { what: "it has ended", timeoutMs: 5000 });
    await sql`delete from public.read where id like 'recLong%'`;
  });
});

test("a page ends when it is large, and the list goes on", async () => {
  await stack.withOwner(base, async (sql) => {
    await sql`
      insert into public.read (id, created_time, name)
      select 'recWide' || lpad(n::text, 10, '0'), now(), repeat('x', 300000) from generate_series(1, 10) as n`;
    const ids: string[] = [];
    const pages: number[] = [];
    let offset = "";
    do {
      const path = `Read?pageSize=8&maxRecords=9&offset=${encodeURIComponent(offset)}`;
      const response = await fetch(`${stack.endpoint}/v0/${baseId}/${path}`, { headers: headers() });
      expect(response.headers.get("x-basetide-answered-by")).toBe("replica");
      const page = (await response.json()) as { records: { id: string }[]; offset?: string };
      ids.push(...page.records.map(({ id }) => id));
      pages.push(page.records.length);
      offset = page.offset ?? "";
    } while (offset !== "");
    const all = await sql<{ id: string }[]>`select id from public.read order by id limit 9`;
    expect(ids).toEqual(all.map(({ id }) => id));
    expect(Math.max(...pages)).toBeLessThan(6);
    await sql`delete from public.read where id like 'recWide%'`;
  });
});

test("a session keeps the plans of some statements, although it is never idle", {
  timeout: 60_000,
}, async () => {
  const replica = openReplica({ url: base.ownerUrl, schema: "public" }, "reads");
  try {
    const ran = async (nth: number) => {
      const rows = await replica.sql.unsafe(`select ${nth} as n where $1::int = 1`, [1], { prepare: true });
      replica.planned(rows.statement.string);
      return rows.length;
    };
    let most = 0;
    for (let nth = 0; nth < 400; nth += 4) {
      expect(await Promise.all([0, 1, 2, 3].map((more) => ran(nth + more)))).toEqual([1, 1, 1, 1]);
      const [kept] = await replica.sql`select count(*)::int as n from pg_prepared_statements`;
      most = Math.max(most, kept!.n);
    }
    expect(most).toBeGreaterThan(20);
    expect(most).toBeLessThan(120);
  } finally {
    await replica.close();
  }
});
