/** SQL writes: statements on the views of the schema `write`, which the proxy has made in the source. */
import type postgres from "postgres";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { startWatchdog } from "../../../core/control/placement";
import { errorOf } from "../../support/error-of";
import { until } from "../../support/poll";
import type { ProxyStack } from "../../support/proxy-stack";
import { writableTasks, writeStack } from "../../support/sql-writes";

let stack: ProxyStack;

beforeAll(async () => {
  stack = await writeStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => stack.sandbox.control.clearFaults());

test("insert, update and delete are made in Airtable at COMMIT, ten to a call, and the session reads them", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  const [one] = await sql`insert into write.tasks (name, hours, status, due, took, urgent)
    values ('New', 1.5, 'Done', '2026-01-02 03:04:05', '1:30:00', true) returning id, name`;
  expect(one).toEqual({ id: null, name: "New" });
  expect(at.inSource().find(({ Name }) => Name === "New")).toMatchObject({
    Hours: 1.5,
    Status: "Done",
    Due: "2026-01-02T03:04:05.000Z",
    Took: 5400,
    Urgent: true,
  });
  expect(await sql`select name, loud, hours from tasks where name = 'New'`).toEqual([
    { name: "New", loud: "NEW", hours: "1.5" },
  ]);
  const before = at.calls().length;
  await sql.begin(async (tx) => {
    await tx`insert into write.tasks (name) select 'Row ' || n from generate_series(1, 25) as n`;
    await tx`update write.tasks set status = 'Done' where name = 'Task 0'`;
    await tx`delete from write.tasks where name = 'Task 1'`;
    expect(at.calls().length).toBe(before);
  });
  expect(
    at
      .calls()
      .slice(before)
      .map(({ method }) => method),
  ).toEqual(["POST", "POST", "POST", "PATCH", "DELETE"]);
  const names = at.inSource().map(({ Name }) => Name);
  expect(names.filter((name) => String(name).startsWith("Row "))).toHaveLength(25);
  expect(names).not.toContain("Task 1");
  expect(await sql`select status from tasks where name = 'Task 0'`).toEqual([{ status: "Done" }]);
  expect(await sql`select count(*)::int as n from write.log where state = 'applied'`).toEqual([{ n: 28 }]);
});

test("a rollback, a rolled back savepoint and a failed transaction send nothing", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  const before = at.calls().length;
  await sql
    .begin(async (tx) => {
      await tx`delete from write.tasks`;
      throw new Error("changed my mind");
    })
    .catch(() => {});
  const failed = await errorOf(
    sql.begin(async (tx) => {
      await tx`delete from write.tasks`;
      await tx`select 1 / 0`;
    }),
  );
  expect(failed.code).toBe("22012");
  expect(at.calls().length).toBe(before);
  await sql.begin(async (tx) => {
    await tx`update write.tasks set name = 'Kept' where name = 'Task 0'`;
    await tx
      .savepoint(async (inner) => {
        await inner`delete from write.tasks`;
        throw new Error("not this");
      })
      .catch(() => {});
  });
  expect(
    at
      .calls()
      .slice(before)
      .map(({ method }) => method),
  ).toEqual(["PATCH"]);
  expect(at.inSource()).toHaveLength(3);
});

test("Airtable's refusal is the error of COMMIT, and nothing of a first call is made", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  const error = await errorOf(sql`update write.tasks set status = 'No such choice' where name < 'Task 2'`);
  expect(error).toMatchObject({
    code: "23514",
    detail: "HTTP 422 INVALID_MULTIPLE_CHOICE_OPTIONS",
    table_name: "tasks",
    column_name: "status",
  });
  expect(error.message).toContain("Insufficient permissions to create new select option");
  expect(at.inSource().map(({ Status }) => Status)).toEqual(["Open", "Open", "Open"]);
  expect(await sql`select distinct state from write.log order by 1`).toEqual([{ state: "refused" }]);
  expect((await errorOf(sql`update write.tasks set loud = 'x'`)).code).toBe("428C9");
  expect((await errorOf(sql`insert into write.tasks (id) values ('recX')`)).code).toBe("428C9");
  await sql`set basetide.typecast = on`;
  await sql`update write.tasks set status = 'No such choice' where name = 'Task 0'`;
  expect(at.inSource()[0]!.Status).toBe("No such choice");
});

test("upsert changes the row that has these values, or inserts one, with the rights of its caller", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer({ tables: ["tasks"] });
  const upsert = (rows: object[], table = "tasks") =>
    sql`select write.upsert(${table}, ${JSON.stringify(rows)}::text::jsonb, array['name']) as n`;
  expect(
    await upsert([
      { name: "Task 0", hours: 8 },
      { name: "New", hours: 9 },
    ]),
  ).toEqual([{ n: 2 }]);
  expect(at.inSource().map(({ Name, Hours }) => [Name, Hours])).toEqual([
    ["Task 0", 8],
    ["Task 1", 1],
    ["Task 2", 2],
    ["New", 9],
  ]);
  expect((await errorOf(upsert([{ name: "a" }, { name: "a" }]))).code).toBe("21000");
  expect((await errorOf(upsert([{ name: "a", none: 1 }]))).code).toBe("42703");
  expect((await errorOf(upsert([{ name: "Ada" }], "people"))).code).toBe("42501");
});

test("at once, a statement returns the record as Airtable has it", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer({ mode: "at_once" });
  const [made] = await sql`insert into write.tasks (name) values ('New') returning id, loud`;
  expect(made).toEqual({ id: at.inSource().find(({ Name }) => Name === "New")!.id, loud: "NEW" });
  const [changed] = await sql`update write.tasks set name = 'Newer' where id = ${made!.id} returning loud`;
  expect(changed).toEqual({ loud: "NEWER" });
  await sql`delete from write.tasks where id = ${made!.id}`;
  expect(at.inSource()).toHaveLength(3);
  const refused = await errorOf(
    sql.begin("isolation level repeatable read", (tx) => tx`insert into write.tasks (name) values ('x')`),
  );
  expect(refused.code).toBe("0A000");
});

test("attach adds files to a cell and keeps those that it has, also twice in a transaction", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  const [{ id } = { id: "" }] = at.inSource();
  const files = () => (at.inSource()[0]!.Files ?? []) as { id: string; url: string; filename?: string }[];
  const attach = (tx: postgres.ISql, url: string, name: string | null = null) =>
    tx`select write.attach('tasks', ${id}, 'files', ${url}, ${name})`;
  await attach(sql, "https://files.example/a.txt", "first.txt");
  const [first] = files();
  expect(first).toMatchObject({ filename: "first.txt" });
  await sql.begin(async (tx) => {
    await attach(tx, "https://files.example/b.txt");
    await attach(tx, "https://files.example/c.txt", "third.txt");
  });
  expect(files().map((file) => file.id)[0]).toBe(first!.id);
  expect(files().map(({ filename }) => filename)).toEqual(["first.txt", "b.txt", "third.txt"]);
  // One that the cell has is left out.
  await sql`update write.tasks set files = files[2:3] where id = ${id}`;
  expect(files().map(({ filename }) => filename)).toEqual(["b.txt", "third.txt"]);
  stack.sandbox.control.updateRecords(at.sourceBaseId, "Tasks", [{ id, fields: { Files: [] } }]);
  expect(await errorOf(sql`update write.tasks set files = files[2:2] where id = ${id}`)).toMatchObject({
    code: "40001",
    column_name: "files",
  });
  expect((await errorOf(sql`select write.attach('tasks', 'recNone', 'files', 'https://x/y')`)).code).toBe(
    "P0002",
  );
  expect((await errorOf(sql`select write.attach('tasks', ${id}, 'none', 'https://x/y')`)).code).toBe("42703");
  const other = await at.writer({ tables: ["people"] });
  expect((await errorOf(attach(other, "https://x/y"))).code).toBe("42501");
});

test("attach, and an update that adds to what SQL shows, keep files that SQL does not show yet", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  const [{ id } = { id: "" }] = at.inSource();
  const inAirtable = (...names: string[]) =>
    stack.sandbox.control.updateRecords(at.sourceBaseId, "Tasks", [
      { id, fields: { Files: names.map((name) => ({ url: `https://files.example/${name}` })) } },
    ]);
  const files = () => (at.inSource()[0]!.Files as { filename: string }[]).map(({ filename }) => filename);
  inAirtable("contract.pdf");
  await sql`select write.attach('tasks', ${id}, 'files', 'https://files.example/new.txt')`;
  expect(files()).toEqual(["contract.pdf", "new.txt"]);
  inAirtable();
  await sql`update write.tasks set files = files || array['https://files.example/b.txt'] where id = ${id}`;
  expect(files()).toEqual(["b.txt"]);
});

test("a row that loses a file in one cell keeps what its transaction has added to another", async () => {
  const at = await writableTasks(stack);
  const { control } = stack.sandbox;
  control.addField(at.sourceBaseId, "Tasks", { name: "Photos", type: "multipleAttachments" });
  const [{ id } = { id: "" }] = at.inSource();
  const cell = (...names: string[]) => names.map((name) => ({ url: `https://files.example/${name}` }));
  control.updateRecords(at.sourceBaseId, "Tasks", [
    { id, fields: { Files: cell("a.txt"), Photos: cell("1.png", "2.png") } },
  ]);
  await at.sync();
  const sql = await at.writer();
  await sql.begin("read write", async (tx) => {
    await tx`select write.attach('tasks', ${id}, 'files', 'https://files.example/b.txt')`;
    await tx`
      update write.tasks set files = files || array['https://files.example/c.txt'], photos = photos[2:] where id = ${id}`;
  });
  const names = (field: string) =>
    (at.inSource()[0]![field] as { filename: string }[]).map(({ filename }) => filename);
  expect([names("Files"), names("Photos")]).toEqual([["a.txt", "b.txt", "c.txt"], ["2.png"]]);
});

test("a COMMIT takes as long as Airtable does, also beyond statement_timeout, which Postgres does not apply to it", async () => {
  const at = await writableTasks(stack, 0);
  const sql = await at.writer();
  await sql.unsafe("set statement_timeout = '200ms'");
  await sql`insert into write.tasks (name) select 'Row ' || n from generate_series(1, 40) as n`;
  expect(at.inSource()).toHaveLength(40);
});

test("submit makes the writes of the transaction a change set in the background; a rollback makes none", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  await sql.unsafe("set statement_timeout = '3s'");
  const before = at.calls().length;
  await sql
    .begin(async (tx) => {
      await tx`delete from write.tasks`;
      await tx`select write.submit()`;
      throw new Error("changed my mind");
    })
    .catch(() => {});
  const id = await sql.begin(async (tx) => {
    const [row] = await tx<{ id: string }[]>`select write.submit() as id`;
    // Longer than the statement may take, if it waited.
    await tx`insert into write.tasks (name, status)
      select 'Row ' || n, case n when 7 then 'None' else 'Open' end from generate_series(1, 400) as n`;
    expect(await tx`select write.submit() as id`).toEqual([row]);
    return row!.id;
  });
  expect(at.calls().length).toBeLessThan(before + 40);
  await until(
    async () => (await sql`select from write.log where state in ('waiting', 'sent')`).length === 0,
    {
      what: "all is made",
    },
  );
  expect(await sql`select set, state, count(*)::int as n from write.log group by 1, 2 order by 2`).toEqual([
    { set: id, state: "applied", n: 399 },
    { set: id, state: "refused", n: 1 },
  ]);
  expect(at.inSource()).toHaveLength(3 + 399);
});

test("the watchdog leaves a transaction that writes alone, and ends one that has an id and may not write", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  const { db } = stack.ctx;
  const watchdog = startWatchdog(stack.ctx);
  onTestFinished(() => watchdog.stop());
  const checked = async () => (await db<{ at: Date }[]>`select checked_at as at from watchdog_clock`)[0]?.at;
  /** A check that began after this call has ended: the next one has begun. */
  const isChecked = async () => {
    for (let nth = 0; nth < 2; nth++) {
      const last = await checked();
      await until(async () => (await checked())?.getTime() !== last?.getTime(), {
        what: "the watchdog checks",
      });
    }
  };
  await sql.begin(async (tx) => {
    await tx`insert into write.tasks (name) values ('New')`;
    await isChecked();
  });
  expect(at.inSource()).toHaveLength(4);
  const ended = errorOf(
    sql.begin(async (tx) => {
      await tx`insert into write.tasks (name) values ('Never')`;
      await db`update sql_users set writes = '{}' where role_name = ${sql.role}`;
      await isChecked();
      await tx`select 1`;
    }),
  );
  expect((await ended).code).toMatch(/^(57P01|CONNECTION_CLOSED)$/);
  expect(at.inSource()).toHaveLength(4);
});

test("I8: a writer can write only to its tables, and can neither connect elsewhere nor read what others write", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer({ tables: ["people"] });
  await sql`insert into write.people (name) values ('Ada')`;
  for (const statement of [
    "insert into write.tasks (name) values ('x')",
    "insert into public.people (id, created_time) values ('x', now())",
    "select * from write_own.intents",
    "select connection from write_own.endpoint",
    "select write_own.ask('{}')",
    "select write_own.send('[]')",
    "select basetide_dblink.dblink_connect('x', 'host=localhost')",
    "create table write.x ()",
    "select * from pg_user_mapping",
  ]) {
    expect([statement, (await errorOf(sql.unsafe(statement))).code]).toEqual([statement, "42501"]);
  }
  const other = await at.writer();
  expect(await other`select * from write.log`).toEqual([]);
});
