/** What the SQL editor says about the errors of each version of Postgres. */
import postgres from "postgres";
import { expect, test, vi } from "vitest";
import { adviceOn } from "../../../core/sql-editor";
import { postgresServer } from "../../support/servers/postgres-server";
import { POSTGRES_VERSIONS } from "../../support/servers/postgres-versions";

vi.setConfig({ testTimeout: 120_000 });

/** With `TOOLS`, all versions. */
const VERSIONS = process.env.TOOLS ? POSTGRES_VERSIONS : (["15", "18"] as const);

const TABLES = [
  ["tasks", "Tasks"],
  ["order", "Order"],
  ["größe_maße", "Größe ☃ Maße"],
  ["backlog", "v1.2: Work.Items"],
  ["a_name_of_a_table_or_a_field_that_has_more_letters_than_a_name", "A name of a table"],
] as const;

const shape = TABLES.map(([name, sourceName]) => ({
  ...{ name, sourceName },
  columns: [
    { name: "Fee", type: "formula" },
    { name: "fee", type: "formula" },
    { name: "spent", type: "duration" },
    { name: "fees", type: "lookup" },
    { name: "done", type: "checkbox" },
  ],
})) as unknown as Parameters<typeof adviceOn>[2];

const WRITE = "through the proxy";
const NUMERIC = "::numeric";

const CASES: [sql: string, advice: string | undefined][] = [
  ["update tasks set fee = '1'", WRITE],
  [`UPDATE public."order" SET "Fee" = '1' WHERE true`, WRITE],
  [`/* by name */ insert into crm."größe_maße" (id) values ('rec1')`, WRITE],
  ["with t as (select 1) delete from tasks", WRITE],
  ["explain analyze update tasks set fee = '1'", WRITE],
  ["select count(*) from taks", "Did you mean tasks?"],
  ["select count(*) from public.taks", "Did you mean tasks?"],
  ["select count(*) from nowhere.tasks", "Did you mean tasks?"],
  [`select count(*) from "Tasks"`, "Did you mean tasks?"],
  [`select count(*) from "crm"."Tasks"`, "Did you mean tasks?"],
  [`select count(*) from "Order"`, 'Did you mean "order"?'],
  [`select count(*) from crm."Oder"`, 'Did you mean "order"?'],
  [`select count(*) from "Größe ☃ Maße"`, 'Did you mean "größe_maße"?'],
  ["select count(*) from grösse_masse", 'Did you mean "größe_maße"?'],
  [`select count(*) from "v1.2: Work.Items"`, "Did you mean backlog?"],
  [`select count(*) from crm."v1.2: Work.Items"`, "Did you mean backlog?"],
  [`select count(*) from "A name of a table or a field that has more letters than a name"`, TABLES[4][0]],
  ["select count(*) from invoices", undefined],
  ["select sum(fee) from tasks", `fee${NUMERIC}`],
  [`select sum("Fee") from crm."order"`, `"Fee"${NUMERIC}`],
  [`select avg(DISTINCT t."Fee") from tasks as t`, `t."Fee"${NUMERIC}`],
  ["select pg_catalog.sum(tasks.fee) from crm.tasks", `tasks.fee${NUMERIC}`],
  ["select sum(crm.tasks.fee) from crm.tasks", NUMERIC],
  ["select round(fee) from tasks", `fee${NUMERIC}`],
  ["select fee * fee from tasks", NUMERIC],
  ["select 2 * fee from tasks", NUMERIC],
  ["select 1 from tasks where fee between 1 and 2", NUMERIC],
  ["select coalesce(fee, 0) from tasks", NUMERIC],
  ["select case when done then fee else 0.5 end from tasks", NUMERIC],
  ["select greatest(1, fee) from tasks", NUMERIC],
  ["select fee from tasks union select 1", NUMERIC],
  ["select coalesce(fee, now()) from tasks", undefined],
  ["select sum(spent) from tasks", "spent::interval"],
  ["select sum(fees) from tasks", "from unnest(fees) as one"],
  ["select sum(done) from tasks", "count(*) filter (where done)"],
  ["select fee || done || nowhere(1) from tasks", undefined],
];

test.for(VERSIONS)("each error has its advice: Postgres %s", async (version) => {
  await using server = await postgresServer({ version });
  const columns = `id text, "Fee" text, fee text, spent text, fees text[], done boolean`;
  await server.run([
    "create schema crm",
    ...TABLES.flatMap(([name]) =>
      ["public", "crm"].map((schema) => `create table ${schema}."${name}" (${columns})`),
    ),
  ]);
  const reader = await server.role("reader");
  await server.run(["grant usage on schema crm to reader"]);
  for (const schema of ["public", "crm"])
    await server.run([`grant select on all tables in schema ${schema} to reader`]);
  for (const isReadOnly of [true, false]) {
    const sql = postgres(reader, {
      ...{ max: 1, onnotice: () => {} },
      connection: { default_transaction_read_only: isReadOnly, search_path: "public" },
    });
    for (const [text, expected] of CASES) {
      const error = (await sql.unsafe(text).catch((reason) => reason)) as postgres.PostgresError;
      const { message, code, hint, position } = error;
      const at = position === undefined ? undefined : Number(position) - 1;
      const advice = adviceOn({ message, sqlState: code, hint, position: at, start: 0 }, text, shape);
      expect([text, message, advice]).toEqual([text, message, expected && expect.stringContaining(expected)]);
    }
    await sql.end();
  }
});
