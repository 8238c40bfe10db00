/** What SQL writes refuse, and values and statements that are easily taken for something else. */
import net from "node:net";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { answers } from "../../../apps/proxy/sql-writes/messages";
import { databaseAdminUrl, getDatabase } from "../../../core/control/placement/databases";
import { withAdmin } from "../../../core/replica/provision";
import { errorOf } from "../../support/error-of";
import type { ProxyStack } from "../../support/proxy-stack";
import { writableTasks, writeStack } from "../../support/sql-writes";

let stack: ProxyStack;

beforeAll(async () => {
  stack = await writeStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => stack.sandbox.control.clearFaults());

test("serializable transactions are refused: Postgres could fail their COMMIT after the writes are made", async () => {
  const at = await writableTasks(stack, 0);
  const one = await at.writer();
  const other = await at.writer();
  for (const sql of [one, other]) await sql.unsafe("begin isolation level serializable");
  const write = (sql: typeof one, name: string) => sql`insert into write.tasks (name) values (${name})`;
  const errors = [await errorOf(write(one, "a")), await errorOf(write(other, "b"))];
  expect(errors.map(({ code }) => code)).toEqual(["0A000", "0A000"]);
  for (const sql of [one, other]) await sql`rollback`;
  expect(at.inSource()).toEqual([]);
  await one.begin("isolation level repeatable read", (tx) => write(tx as unknown as typeof one, "c"));
  expect(at.inSource()).toMatchObject([{ Name: "c" }]);
});

test("a barcode keeps its digits, and does not keep a row from being checked", async () => {
  const at = await writableTasks(stack, 1);
  const { control } = stack.sandbox;
  control.addField(at.sourceBaseId, "Tasks", { name: "Code", type: "barcode" });
  await at.sync();
  const sql = await at.writer();
  await sql`update write.tasks set code = '340123450000000018'`;
  expect(at.inSource()).toMatchObject([{ Code: { text: "340123450000000018" } }]);
  expect(await sql`select code from tasks`).toEqual([{ code: "340123450000000018" }]);
  // SQL has NULL.
  const [{ id } = { id: "" }] = at.inSource();
  control.updateRecords(at.sourceBaseId, "Tasks", [{ id, fields: { Code: { text: "A-1" } } }]);
  await at.sync();
  await sql.unsafe(`set basetide."check" = 'row'`);
  await sql`update write.tasks set hours = 7`;
  expect(at.inSource()).toMatchObject([{ Hours: 7, Code: { text: "A-1" } }]);
});

test("a field of another type is written as that, also if its column is the same", async () => {
  const at = await writableTasks(stack, 1);
  const { control } = stack.sandbox;
  control.addField(at.sourceBaseId, "Tasks", {
    name: "Computed",
    type: "formula",
    options: { formula: "{Name}" },
  });
  control.addField(at.sourceBaseId, "Tasks", { name: "Code", type: "number", options: { precision: 0 } });
  await at.sync();
  const sql = await at.writer();
  expect((await errorOf(sql`update write.tasks set computed = 'x'`)).code).toBe("428C9");
  control.retypeField(at.sourceBaseId, "Tasks", "Computed", "singleLineText");
  control.retypeField(at.sourceBaseId, "Tasks", "Code", "barcode");
  await at.sync();
  await sql`update write.tasks set computed = 'x', code = 12`;
  expect(at.inSource()).toMatchObject([{ Computed: "x", Code: { text: "12" } }]);
});

test("a transaction deletes a row once, whatever else it does to it", async () => {
  const at = await writableTasks(stack, 4);
  const sql = await at.writer();
  const twice = "(values (1), (2)) as v (n)";
  await sql.unsafe(`delete from write.tasks as t using ${twice} where t.name = 'Task 0'`);
  await sql.begin(async (tx) => {
    await tx`delete from write.tasks where name = 'Task 1'`;
    await tx`update write.tasks set hours = 9 where name in ('Task 1', 'Task 3')`;
  });
  await sql`set basetide.writes = 'at_once'`;
  await sql.unsafe(`delete from write.tasks as t using ${twice} where t.name = 'Task 2'`);
  expect(at.inSource()).toMatchObject([{ Name: "Task 3", Hours: 9 }]);
});

test("what is too long, and settings that no client should make, are refused before anything is sent", async () => {
  const at = await writableTasks(stack, 0);
  const { control } = stack.sandbox;
  for (const name of ["A", "B"]) control.addField(at.sourceBaseId, "Tasks", { name, type: "multilineText" });
  const long = "x".repeat(60_000);
  control.createRecords(at.sourceBaseId, "Tasks", [{ fields: { Name: "Long", A: long, B: long } }]);
  await at.sync();
  const sql = await at.writer();
  const before = at.calls().length;
  const most = sql`insert into write.tasks (name) select repeat('x', 90000) from generate_series(1, 400)`;
  expect(await errorOf(most)).toMatchObject({ code: "54000" });
  for (const names of ["[1]", '{"a": 1}', "5"]) {
    await sql`select set_config('basetide.filenames', ${names}, false)`;
    expect((await errorOf(sql`insert into write.tasks (name) values ('x')`)).code).toBe("22023");
  }
  await sql`reset basetide.filenames`;
  expect(at.calls().length).toBe(before);
  // The limit is for what is written.
  await sql`update write.tasks set hours = 1`;
  await sql`delete from write.tasks`;
  expect(at.inSource()).toEqual([]);
});

test.each([true, false])(
  "a transaction that is submitted writes 10,000 rows, too (submitted first: %s)",
  async (isFirst) => {
    const at = await writableTasks(stack, 0);
    const sql = await at.writer();
    const before = at.calls().length;
    const isRolledBack = sql.begin(async (tx) => {
      if (isFirst) await tx`select write.submit()`;
      await tx`insert into write.tasks (name) select 'x' from generate_series(1, 10000)`;
      if (!isFirst) await tx`select write.submit()`;
      await tx
        .savepoint(async (inner) => {
          expect((await errorOf(inner`insert into write.tasks (name) values ('x')`)).code).toBe("54000");
          throw new Error("rolled back");
        })
        .catch(() => {});
      throw new Error("rolled back");
    });
    await expect(isRolledBack).rejects.toThrow("rolled back");
    expect(at.calls().length).toBe(before);
  },
);

test("files are added to more rows than Airtable can be asked about in one call", async () => {
  const at = await writableTasks(stack, 400);
  const sql = await at.writer();
  await sql`update write.tasks set files = files || array['https://files.example/b.txt'] where name ~ '[0-9]'`;
  expect(at.inSource().filter(({ Files }) => (Files as unknown[] | undefined)?.length === 1)).toHaveLength(
    400,
  );
}, 60_000);

test("words in a text are no statement, and a statement in a comment's shadow is one", async () => {
  const at = await writableTasks(stack, 0);
  const sql = await at.writer();
  await sql.unsafe(`insert into write.tasks (name) values ('a; set constraints all immediate')`);
  await sql.unsafe(
    `/* ; set constraints */ insert into write.tasks (name) values (E'\\'; prepare transaction')`,
  );
  expect(at.inSource().map(({ Name }) => Name)).toEqual([
    "a; set constraints all immediate",
    "'; prepare transaction",
  ]);
  const early = `insert into write.tasks (name) values ('it''s'); /* now */ set constraints all immediate; rollback`;
  expect((await errorOf(sql.unsafe(early))).code).toBe("0A000");
  expect(at.inSource()).toHaveLength(2);
});

test("a deferred constraint of the customer's own table fails before anything is sent", async () => {
  const at = await writableTasks(stack, 0);
  const sql = await at.writer();
  const database = await getDatabase(stack.ctx.db, at.base.database.id);
  await withAdmin(await databaseAdminUrl(stack.ctx, database), (admin) =>
    admin.unsafe(`
      create table public.calls (id int, constraint one unique (id) deferrable initially deferred);
      grant insert on public.calls to ${sql.role}`),
  );
  const write = (name: string, ids: number[]) =>
    sql.begin(async (tx) => {
      await tx`insert into write.tasks (name) values (${name})`;
      await tx`insert into public.calls select unnest(${ids}::int[])`;
      await tx`update write.tasks set hours = 2 where name = ${name}`;
    });
  expect((await errorOf(write("refused", [1, 1]))).code).toBe("23505");
  expect(at.inSource()).toEqual([]);
  await write("made", [1, 2]);
  expect(at.inSource()).toMatchObject([{ Name: "made" }]);
});

test("at once, there is nothing to submit", async () => {
  const at = await writableTasks(stack, 0);
  const sql = await at.writer({ mode: "at_once" });
  expect((await errorOf(sql`select write.submit()`)).code).toBe("0A000");
});

/** An endpoint that has no memory for requests: it answers each with this SQLSTATE. Returns its port. */
async function fullEndpoint(sqlState: string): Promise<number> {
  const askPassword = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]);
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => {
      const type = String.fromCharCode(data[0]!);
      if (type === "p") socket.write(answers.authenticated());
      else if (type === "Q") socket.end(answers.error(sqlState, "too many large requests at a time"));
      else socket.write(data.length === 8 ? "N" : askPassword);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as net.AddressInfo).port;
}

test.each([
  ["BT001", "08006", "nothing was sent"],
  ["XX000", "08007", "may have made the change"],
])("an endpoint that answers %s: %s", async (sqlState, code, says) => {
  const at = await writableTasks(stack, 0);
  const sql = await at.writer();
  const database = await getDatabase(stack.ctx.db, at.base.database.id);
  const to = `hostaddr=127.0.0.1 port=${await fullEndpoint(sqlState)} user=x password=x dbname=x`;
  await withAdmin(await databaseAdminUrl(stack.ctx, database), (admin) =>
    admin.begin(async (tx) => {
      await tx`select set_config('role', (select rolname from pg_class as c join pg_roles as r on r.oid = c.relowner
        where c.oid = 'write_own.endpoint'::regclass), true)`;
      await tx`update write_own.endpoint set connection = ${to}`;
    }),
  );
  const error = await errorOf(sql`insert into write.tasks (name) values ('x')`);
  expect(error.code).toBe(code);
  expect(error.message).toContain(says);
});
