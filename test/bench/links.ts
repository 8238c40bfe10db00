/**
 * Measures the sum over links in the form that `docs/sql.md` shows, beside the same sum over a copy that has one link in a text
 * column and its numbers as doubles, as other products have it.
 *
 * Run: `bun run bench links`.
 */
import postgres from "postgres";
import { quantile } from "../support/quantile";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";

/** As `bench first-copy` has them. */
const ROWS = 10_000;
const LINKED = 200;
const FIELDS = 15;
const ROUNDS = 60;
const LIMIT = 1.1;

/** Further columns: texts of 32 bytes, numbers. */
const more = Array.from({ length: FIELDS - 3 }, (_, nth) =>
  nth % 2 === 0 ? `md5((n + ${nth})::text) as text_${nth}` : `(n * ${nth}.25)::numeric as number_${nth}`,
);
const TABLES = `
  create table tasks (id text primary key, name text, status text);
  insert into tasks select 'rec' || lpad(n::text, 14, '0'), 'Task ' || n, 'status ' || n % 20 from generate_series(1, ${LINKED}) as n;
  create table projects as select 'rec' || lpad((n + 1000)::text, 14, '0') as id, 'Project ' || n as name,
    array['rec' || lpad((1 + n % ${LINKED})::text, 14, '0')] as related, (n * 1.25)::numeric as amount, ${more.join(", ")}
    from generate_series(1, ${ROWS}) as n;
  create table plain as select * from projects;
  alter table plain alter related type text using related[1], alter amount type float8;
  alter table projects add primary key (id);
  alter table plain add primary key (id)`;

const QUERIES = {
  "text and doubles": `select t.status, sum(p.amount) from plain as p join tasks as t on t.id = p.related group by 1`,
  "the form for sums": `select t.status, sum(p.amount)
    from (select unnest(related) as task_id, amount
      from (select related, sum(amount) as amount from projects group by 1) as sums) as p
    join tasks as t on t.id = p.task_id group by 1`,
  "the form for large tables": `select t.status, sum(p.amount)
    from (select amount, unnest(related) as task_id from projects) as p join tasks as t on t.id = p.task_id group by 1`,
  "= any": `select t.status, sum(p.amount) from projects as p join tasks as t on t.id = any (p.related) group by 1`,
};

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  releases.defer(() => sql.end());
  await sql.unsafe(TABLES);
  await sql.unsafe("vacuum analyze");
  await sql`set max_parallel_workers_per_gather = 0`;
  const times = new Map(Object.keys(QUERIES).map((form) => [form, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [form, text] of Object.entries(QUERIES)) {
      const from = performance.now();
      await sql.unsafe(text);
      times.get(form)!.push(performance.now() - from);
    }
  }
  const medians = new Map([...times].map(([form, ms]) => [form, quantile(ms, 0.5)]));
  const floor = medians.get("text and doubles")!;
  const { text, isWithin } = ratio(medians.get("the form for sums")! / floor, LIMIT);
  table(
    ["form of the query", "p50, ms", "of the first", "limit"],
    [...medians].map(([form, ms]) =>
      form === "the form for sums"
        ? [form, ms.toFixed(1), text, LIMIT]
        : [form, ms.toFixed(1), (ms / floor).toFixed(2), ""],
    ),
  );
  return isWithin;
}
