/** SQL writes that fail: in the second call, without an answer, against changed records, and while tables change. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, type TestContext, test } from "vitest";
import { getBase, updateSettings } from "../../../core/control/bases";
import { getChangeSet, undoChangeSet } from "../../../core/control/change-sets";
import { errorOf } from "../../support/error-of";
import { fuzzRuns } from "../../support/fuzz";
import { until } from "../../support/poll";
import type { ProxyStack } from "../../support/proxy-stack";
import { writableTasks as tasksIn, writeStack } from "../../support/sql-writes";

let stack: ProxyStack;

beforeAll(async () => {
  stack = await writeStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Each test has a base of its own, and so have its faults. */
const writableTasks = ({ onTestFinished }: TestContext, count?: number) =>
  tasksIn(stack, count, { onFinished: onTestFinished });

type Scene = Awaited<ReturnType<typeof writableTasks>>;
type Writer = Awaited<ReturnType<Scene["writer"]>>;

const names = (at: Scene) => at.inSource().map(({ Name }) => Name as string);

/** The states of the rows that the user has written, when all have one that stays. */
async function states(sql: Writer): Promise<Record<string, number>> {
  const count = () => sql<{ state: string; n: number }[]>`
    select state, count(*)::int as n from write.log group by state order by state`;
  await until(async () => !(await count()).some(({ state }) => state === "sent" || state === "waiting"), {
    what: "all writes have a result",
    timeoutMs: 40_000,
  });
  return Object.fromEntries((await count()).map(({ state, n }) => [state, n]));
}

test("a refusal in the second call: the error names what was made, and nothing more is sent", async (context) => {
  const at = await writableTasks(context, 0);
  const sql = await at.writer();
  const error = await errorOf(
    sql`insert into write.tasks (name, status)
      select 'Row ' || n, case n when 15 then 'No such choice' else 'Open' end from generate_series(1, 30) as n`,
  );
  expect(error.code).toBe("23514");
  expect(error.detail).toMatch(
    /^HTTP 422 INVALID_MULTIPLE_CHOICE_OPTIONS; Airtable had already made the changes of rec/,
  );
  expect(at.inSource()).toHaveLength(10);
  expect((await sql`select id from tasks`).length).toBe(10);
  expect(await states(sql)).toEqual({ applied: 10, refused: 10, not_applied: 10 });
});

// These mostly wait.
test.concurrent.for(["after", "before"] as const)(
  "a call that Airtable does not answer (%s it had an effect) fails with 08007, is never sent again, and gets its result",
  async (when, context) => {
    const at = await writableTasks(context);
    const sql = await at.writer();
    const fault = { kind: "reset", count: 1, base: at.sourceBaseId, when } as const;
    stack.sandbox.control.addFault({ ...fault, method: "POST" });
    const error = await errorOf(sql`insert into write.tasks (name) values ('New')`);
    expect(error.code).toBe("08007");
    expect(error.detail).toMatch(/chs_/);
    stack.sandbox.control.addFault({ ...fault, method: "PATCH" });
    expect((await errorOf(sql`update write.tasks set hours = 9 where name = 'Task 0'`)).code).toBe("08007");
    stack.sandbox.control.addFault({ ...fault, method: "DELETE" });
    expect((await errorOf(sql`delete from write.tasks where name = 'Task 1'`)).code).toBe("08007");
    const isMade = when === "after";
    expect(await states(sql)).toEqual(isMade ? { applied: 3 } : { not_applied: 3 });
    expect(names(at)).toEqual(isMade ? ["Task 0", "Task 2", "New"] : ["Task 0", "Task 1", "Task 2"]);
    expect(at.inSource()[0]!.Hours).toBe(isMade ? 9 : 0);
  },
);

test.concurrent("a COMMIT whose end cannot be recorded succeeds, as Airtable has made it, and the log has its result later", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  const { db } = stack.managed;
  await db.unsafe(`
    create function refuse_end() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
    create trigger refuse_end before update on change_sets for each row
      when (new.state = 'applied' and new.base_id = '${at.base.id}') execute function refuse_end()`);
  try {
    await sql`update write.tasks set hours = 9 where name = 'Task 0'`;
    expect(at.inSource()[0]!.Hours).toBe(9);
    expect(await sql`select state from write.log`).toEqual([{ state: "sent" }]);
  } finally {
    await db.unsafe("drop function refuse_end cascade");
  }
  expect(await states(sql)).toEqual({ applied: 1 });
});

test.concurrent("a write whose result cannot be found out for a day is unknown", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  const fault = { base: at.sourceBaseId, when: "after" } as const;
  stack.sandbox.control.addFault({ ...fault, kind: "reset", count: 1, method: "PATCH" });
  expect((await errorOf(sql`update write.tasks set hours = 9 where name = 'Task 0'`)).code).toBe("08007");
  stack.sandbox.control.addFault({ ...fault, kind: "unauthorized", count: 1000, method: "GET" });
  await stack.managed.db`
    update change_items set sent_at = sent_at - interval '25 hours'
    where set_id in (select id from change_sets where base_id = ${at.base.id})`;
  expect(await states(sql)).toEqual({ unknown: 1 });
});

test("what cannot be sent fails with its reason, and can be repeated", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  stack.sandbox.control.addFault({ kind: "billing_limit", count: 1, base: at.sourceBaseId, method: "PATCH" });
  expect((await errorOf(sql`update write.tasks set hours = 9`)).code).toBe("53400");
  stack.sandbox.control.addFault({ kind: "forbidden", count: 1, base: at.sourceBaseId, method: "PATCH" });
  expect((await errorOf(sql`update write.tasks set hours = 9`)).code).toBe("42501");
  await sql`update write.tasks set hours = 9`;
  expect(at.inSource().map(({ Hours }) => Hours)).toEqual([9, 9, 9]);
  await updateSettings(stack.managed, at.base, { sqlWrites: false });
  expect((await errorOf(sql`update write.tasks set hours = 8`)).code).toBe("42P01");
  await updateSettings(stack.managed, at.base, { sqlWrites: true });
  // The same user may write again.
  await sql`update write.tasks set hours = 7`;
  expect(at.inSource().map(({ Hours }) => Hours)).toEqual([7, 7, 7]);
});

test("each error of Airtable has its SQLSTATE, message, detail, table and column", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  const [first] = at.inSource();
  const update = (column: string, value: string) =>
    sql.unsafe(`update write.tasks set ${column} = ${value} where name = 'Task 0'`);
  expect(await errorOf(update("status", "'None'"))).toMatchObject({
    code: "23514",
    detail: "HTTP 422 INVALID_MULTIPLE_CHOICE_OPTIONS",
    table_name: "tasks",
    column_name: "status",
  });
  expect(
    await errorOf(sql`insert into write.people (name, tasks) values ('Ada', '{recNone}')`),
  ).toMatchObject({
    code: "P0002",
    detail: "HTTP 422 ROW_DOES_NOT_EXIST",
    table_name: "people",
  });
  expect(await errorOf(update("took", "'1 day'"))).toMatchObject({ code: "22023", column_name: "took" });
  const faults = [
    ["forbidden", "42501", "HTTP 403 INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND"],
    ["not_found", "P0002", "HTTP 404 NOT_FOUND"],
    ["billing_limit", "53400", "HTTP 429 PUBLIC_API_BILLING_LIMIT_EXCEEDED"],
    ["status_500", "08007", "HTTP 500 SERVER_ERROR"],
    ["status_503", "08007", "HTTP 503"],
    ["html_200", "08007", "HTTP 200"],
  ] as const;
  for (const [kind, code, detail] of faults) {
    stack.sandbox.control.addFault({ kind, count: 1, base: at.sourceBaseId, method: "PATCH" });
    const error = await errorOf(update("hours", "9"));
    expect([kind, error]).toMatchObject([
      kind,
      { code, detail: expect.stringContaining(detail), table_name: "tasks", column_name: "hours" },
    ]);
    expect(error.message).not.toBe("");
  }
  stack.sandbox.control.deleteRecords(at.sourceBaseId, "Tasks", [first!.id]);
  expect(await errorOf(update("hours", "9"))).toMatchObject({
    code: "P0002",
    detail: "HTTP 422 ROW_DOES_NOT_EXIST",
    table_name: "tasks",
  });
  stack.sandbox.control.deleteField(at.sourceBaseId, "Tasks", "Took");
  const gone = await errorOf(sql`update write.tasks set took = '1:00:00' where name = 'Task 1'`);
  expect(gone).toMatchObject({ code: "42703", detail: "HTTP 422 UNKNOWN_FIELD_NAME" });
  stack.sandbox.control.addFault({ kind: "unauthorized", count: 1, base: at.sourceBaseId, method: "PATCH" });
  expect(await errorOf(sql`update write.tasks set hours = 9 where name = 'Task 1'`)).toMatchObject({
    code: "28000",
    detail: "HTTP 401 AUTHENTICATION_REQUIRED",
  });
});

test("a COMMIT that is canceled ends at once, and the log has what became of it", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  const fault = { kind: "hang", count: 1, base: at.sourceBaseId, method: "POST", delayMs: 900 } as const;
  stack.sandbox.control.addFault(fault);
  const writing = sql`insert into write.tasks (name) values ('New')`.execute();
  const isSent = async () =>
    (
      await stack.ctx.db`
        select from change_items as i join change_sets as s on s.id = i.set_id
        where s.base_id = ${at.base.id} and i.state = 'sent'`
    ).length > 0;
  const isAsked = () =>
    stack.sandbox.control
      .log(at.sourceBaseId)
      .some(({ method, path }) => method === "POST" && !path.includes("listRecords"));
  await until(isAsked, { what: "Airtable is asked" });
  writing.cancel();
  expect((await errorOf(writing)).code).toBe("57014");
  expect(await isSent()).toBe(true);
  expect(await states(sql)).toEqual({ applied: 1 });
  expect(names(at).at(-1)).toBe("New");
  // The session can write again.
  await sql`insert into write.tasks (name) values ('Newer')`;
  expect(names(at).at(-1)).toBe("Newer");
});

test("of what is canceled between its calls, nothing more is sent, and nothing has to be looked up", async (context) => {
  const at = await writableTasks(context, 0);
  const sql = await at.writer();
  const { control } = stack.sandbox;
  control.addFault({ kind: "hang", count: 1, base: at.sourceBaseId, method: "POST", delayMs: 500 });
  const writing =
    sql`insert into write.tasks (name) select 'Row ' || n from generate_series(1, 25) as n`.execute();
  const isAsked = () => at.calls().some(({ path }) => !path.includes("listRecords"));
  await until(isAsked, { what: "Airtable is asked" });
  writing.cancel();
  expect((await errorOf(writing)).code).toBe("57014");
  expect(await states(sql)).toEqual({ applied: 10, not_applied: 15 });
  const [left] = await sql`select error from write.log where state = 'not_applied' limit 1`;
  expect(left!.error).toContain("interrupted");
  expect(names(at)).toHaveLength(10);
});

test("what is not sent after a first call is no transaction to repeat", async (context) => {
  const at = await writableTasks(context, 0);
  const sql = await at.writer();
  stack.sandbox.control.addFault({ kind: "rate_limited", after: 1, base: at.sourceBaseId, method: "POST" });
  const error = await errorOf(
    sql`insert into write.tasks (name) select 'Row ' || n from generate_series(1, 15) as n`,
  );
  expect(error).toMatchObject({ code: expect.stringMatching(/^(53400|08007)$/) });
  expect(error.detail).toContain("Airtable had already made the changes of rec");
  expect(at.inSource()).toHaveLength(10);
});

test("basetide.check refuses a row that has changed in Airtable", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  const [first] = at.inSource();
  await sql`set basetide."check" = 'row'`;
  await sql`update write.tasks set status = 'Done' where name = 'Task 1'`;
  stack.sandbox.control.updateRecords(at.sourceBaseId, "Tasks", [{ id: first!.id, fields: { Hours: 5 } }]);
  const error = await errorOf(sql`update write.tasks set status = 'Done'`);
  expect(error).toMatchObject({ code: "40001", column_name: "hours" });
  expect(at.inSource().map(({ Status }) => Status)).toEqual(["Open", "Done", "Open"]);
});

test("views follow renamed and deleted fields and tables, and keep who may write", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  const { control } = stack.sandbox;
  control.renameField(at.sourceBaseId, "Tasks", "Name", "Title");
  control.renameTable(at.sourceBaseId, "Tasks", "Jobs");
  control.deleteField(at.sourceBaseId, "Jobs", "Hours");
  await at.sync();
  await sql`insert into write.jobs (title, status) values ('New', 'Done')`;
  expect(at.inSource("Jobs").at(-1)).toMatchObject({ Title: "New", Status: "Done" });
  expect((await errorOf(sql`insert into write.jobs (hours) values (1)`)).code).toBe("42703");
  expect((await errorOf(sql`insert into write.tasks (name) values ('x')`)).code).toBe("42P01");
  // A rebuild of all tables.
  await updateSettings(stack.managed, at.base, { linkedRecordsAsText: true });
  await at.sync();
  const [person] =
    await sql`insert into write.people (name, tasks) values ('Ada', ${at.inSource("Jobs")[0]!.id}) returning name`;
  expect(person).toEqual({ name: "Ada" });
  expect(at.inSource("People")).toMatchObject([{ Name: "Ada", Tasks: [at.inSource("Jobs")[0]!.id] }]);
  // SQL has only the first link: an undo would lose the others.
  await sql`update write.people set tasks = ${at.inSource("Jobs")[1]!.id} where name = 'Ada'`;
  const [{ set } = { set: "" }] = await sql<{ set: string }[]>`select set from write.log limit 1`;
  expect((await errorOf(undoChangeSet(stack.managed, at.base, set))).message).toContain("is not known");
});

test("an update that Airtable has not made is not applied, though the old values could be forms of the new ones", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  await sql`insert into write.tasks (name, hours) values ('New', 4)`;
  stack.sandbox.control.addFault({
    kind: "reset",
    when: "before",
    count: 1,
    base: at.sourceBaseId,
    method: "PATCH",
  });
  const error = await errorOf(sql`update write.tasks set status = 'Done', hours = 4.5 where name = 'New'`);
  expect(error.code).toBe("08007");
  expect(await states(sql)).toEqual({ applied: 1, not_applied: 1 });
});

test.concurrent("an update that replaces a file, and that Airtable has not made, is made if it was submitted, and otherwise unknown", async (context) => {
  const at = await writableTasks(context, 1);
  const sql = await at.writer();
  const [{ id } = { id: "" }] = at.inSource();
  const { control } = stack.sandbox;
  const fault = { kind: "reset", count: 1, base: at.sourceBaseId, when: "before", method: "PATCH" } as const;
  const files = () => (at.inSource()[0]!.Files as { filename: string }[]).map(({ filename }) => filename);
  await sql`update write.tasks set files = array['https://files.example/a.txt'] where id = ${id}`;
  const isShown = async () => (await sql`select from tasks where files is not null`).length === 1;
  await until(isShown, { what: "SQL has the file" });
  control.addFault(fault);
  await sql.begin(async (tx) => {
    await tx`update write.tasks set files = array['https://files.example/b.txt'] where id = ${id}`;
    await tx`select write.submit()`;
  });
  expect(await states(sql)).toEqual({ applied: 2 });
  expect(files()).toEqual(["b.txt"]);
  control.addFault(fault);
  const replacing = sql`update write.tasks set files = array['https://files.example/c.txt'] where id = ${id}`;
  expect((await errorOf(replacing)).code).toBe("08007");
  expect(await states(sql)).toEqual({ applied: 2, unknown: 1 });
});

test("writes that are submitted while the base is being moved say so", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  await stack.ctx.db`update bases set state = 'moving' where id = ${at.base.id}`;
  const error = await errorOf(
    sql.begin(async (tx) => {
      await tx`update write.tasks set hours = 77 where name = 'Task 0'`;
      await tx`select write.submit()`;
    }),
  );
  await stack.ctx.db`update bases set state = 'active' where id = ${at.base.id}`;
  expect(error).toMatchObject({ code: "55000", message: expect.stringContaining("moved") });
});

test("what Airtable has in another form than SQL has written can be undone", async (context) => {
  const at = await writableTasks(context);
  const sql = await at.writer();
  await sql.begin(async (tx) => {
    await tx`set local basetide.typecast = on`;
    await tx`insert into write.people (name, tasks) values ('Ada', array['Task 0'])`;
  });
  expect(at.inSource("People")).toMatchObject([{ Name: "Ada", Tasks: [at.inSource()[0]!.id] }]);
  const [{ set } = { set: "" }] = await sql<{ set: string }[]>`select set from write.log limit 1`;
  const isEnded = async () => (await getChangeSet(stack.ctx.db, at.base.id, set)).endedAt !== null;
  await until(isEnded, { what: "the write is recorded" });
  await updateSettings(stack.managed, at.base, { changeSets: true });
  const undone = await undoChangeSet(stack.managed, await getBase(stack.ctx.db, at.base.id), set);
  await until(async () => at.inSource("People").length === 0, { what: "the record is gone" });
  expect(undone.undoes).toBe(set);
});

test("a file that was added can be removed again, and those that the cell had stay", async (context) => {
  const at = await writableTasks(context, 1);
  const sql = await at.writer();
  const files = () => ((at.inSource()[0]!.Files ?? []) as { id: string }[]).map(({ id }) => id);
  const [{ id } = { id: "" }] = at.inSource();
  stack.sandbox.control.updateRecords(at.sourceBaseId, "Tasks", [
    { id, fields: { Files: [{ url: "https://files.example/a.txt" }] } },
  ]);
  const had = files();
  await sql`select write.attach('tasks', ${id}, 'files', 'https://files.example/b.txt')`;
  expect(files()).toEqual([...had, expect.anything()]);
  const [{ set } = { set: "" }] = await sql<{ set: string }[]>`select set from write.log limit 1`;
  const isEnded = async () => (await getChangeSet(stack.ctx.db, at.base.id, set)).endedAt !== null;
  await until(isEnded, { what: "the write is recorded" });
  await updateSettings(stack.managed, at.base, { changeSets: true });
  await undoChangeSet(stack.managed, await getBase(stack.ctx.db, at.base.id), set);
  await until(() => files().length === 1, { what: "the file is gone" });
  expect(files()).toEqual(had);
});

/** A base whose table of people the replica answers for, also to its own key. */
async function peopleInReplica(context: TestContext) {
  const at = await writableTasks(context);
  const sql = await at.writer();
  await sql`insert into write.people (name) values ('Ada')`;
  await updateSettings(stack.managed, await getBase(stack.ctx.db, at.base.id), { replicaReads: true });
  const isFromReplica = async () => {
    const headers = { authorization: `Bearer ${stack.sandbox.key}` };
    const url = `${stack.endpoint}/v0/${at.sourceBaseId}/People?maxRecords=1`;
    const response = await fetch(url, { headers });
    await response.text();
    return response.headers.get("x-basetide-answered-by") === "replica";
  };
  await until(isFromReplica, { what: "the replica answers", timeoutMs: 15_000 });
  const named = (name: string) => at.inSource("People").filter(({ Name }) => Name === name);
  const lose = (method: "POST" | "PATCH") =>
    stack.sandbox.control.addFault({ kind: "reset", count: 1, base: at.sourceBaseId, when: "after", method });
  return { at, sql, named, lose };
}

test.concurrent("basetide.check compares with Airtable, also where the replica answers reads", async (context) => {
  const { at, sql, named } = await peopleInReplica(context);
  const [ada] = named("Ada");
  await sql`set basetide."check" = 'row'`;
  const taken = [{ id: ada!.id, fields: { Name: "Taken" } }];
  stack.sandbox.control.updateRecords(at.sourceBaseId, "People", taken);
  expect((await errorOf(sql`update write.people set name = 'Mine'`)).code).toBe("40001");
  expect(named("Taken")).toHaveLength(1);
});

test.concurrent("what became of a call without an answer is looked up in Airtable, also where the replica answers reads", async (context) => {
  const { sql, named, lose } = await peopleInReplica(context);
  lose("POST");
  await sql.begin(async (tx) => {
    await tx`insert into write.people (name) values ('Once')`;
    await tx`select write.submit()`;
  });
  expect(await states(sql)).toEqual({ applied: 2 });
  expect(named("Once")).toHaveLength(1);
  lose("PATCH");
  const update = sql`update write.people set name = 'Grace' where name = 'Ada'`;
  expect((await errorOf(update)).code).toBe("08007");
  expect(await states(sql)).toEqual({ applied: 3 });
  expect(named("Grace")).toHaveLength(1);
});

/** A step of a random transaction. */
const step = fc.oneof(
  fc.record({ kind: fc.constant("insert" as const), n: fc.integer({ min: 1, max: 12 }) }),
  fc.record({ kind: fc.constant("update" as const), among: fc.nat(5), hours: fc.nat(99) }),
  fc.record({ kind: fc.constant("delete" as const), among: fc.nat(5) }),
  fc.record({ kind: fc.constantFrom("savepoint" as const, "rollback to" as const, "release" as const) }),
);
const transaction = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 8 }),
  end: fc.constantFrom(
    "commit" as const,
    "commit" as const,
    "rollback" as const,
    "error" as const,
    "disconnect" as const,
  ),
});

/** Of each task that the model has, by name: its hours. */
type Model = Map<string, number | undefined>;

test("random transactions: Airtable, the tables and the log have what was committed, and nothing else", async (context) => {
  await fc.assert(
    fc.asyncProperty(fc.array(transaction, { minLength: 1, maxLength: 4 }), async (transactions) => {
      const at = await writableTasks(context, 3);
      let sql = await at.writer();
      let model: Model = new Map(at.inSource().map(({ Name, Hours }) => [Name as string, Hours as number]));
      let [named, logged] = [0, 0];
      for (const { steps, end } of transactions) {
        // A transaction does not see its own writes: what it changes are the tasks that were there.
        const before = [...model.keys()];
        let changes: { name: string; hours: number | undefined; isGone: boolean }[] = [];
        const saved: (typeof changes)[] = [];
        await sql.unsafe("begin");
        for (const one of steps) {
          if (one.kind === "insert") {
            const made = Array.from({ length: one.n }, () => `New ${named++}`);
            await sql`insert into write.tasks (name) select unnest(${made}::text[])`;
            changes.push(...made.map((name) => ({ name, hours: undefined, isGone: false })));
          } else if (one.kind === "savepoint") {
            saved.push([...changes]);
            await sql.unsafe(`savepoint s${saved.length}`);
          } else if (!("among" in one)) {
            if (saved.length === 0) continue;
            await sql.unsafe(`${one.kind} s${saved.length}`);
            if (one.kind === "rollback to") changes = [...saved.at(-1)!];
            else saved.pop();
          } else {
            const name = before[one.among % Math.max(1, before.length)];
            // Airtable refuses to change a record that the transaction has deleted.
            if (name === undefined || changes.some((change) => change.name === name && change.isGone))
              continue;
            const hours = one.kind === "update" ? one.hours : undefined;
            if (hours === undefined) await sql`delete from write.tasks where name = ${name}`;
            // What is there already is not sent.
            else if ((await sql`select from tasks where name = ${name} and hours = ${hours}`).length > 0)
              continue;
            else await sql`update write.tasks set hours = ${hours} where name = ${name}`;
            changes.push({ name, hours, isGone: one.kind === "delete" });
          }
        }
        if (end === "error") await errorOf(sql`select 1 / 0`);
        if (end === "disconnect") {
          await sql.end({ timeout: 0 });
          sql = await at.writer();
          logged = 0;
          continue;
        }
        await sql.unsafe(end === "commit" ? "commit" : "rollback");
        if (end !== "commit") continue;
        logged += changes.length;
        model = new Map(model);
        for (const { name, hours, isGone } of changes) {
          if (isGone) model.delete(name);
          else model.set(name, hours);
        }
      }
      const expected = [...model].sort();
      expect(
        at
          .inSource()
          .map(({ Name, Hours }) => [Name, Hours])
          .sort(),
      ).toEqual(expected);
      const rows = await sql<{ name: string; hours: string | null }[]>`select name, hours from public.tasks`;
      expect(
        rows.map(({ name, hours }) => [name, hours === null ? undefined : Number(hours)]).sort(),
      ).toEqual(expected);
      expect(await states(sql)).toEqual(logged > 0 ? { applied: logged } : {});
    }),
    { numRuns: 3 * fuzzRuns },
  );
});
