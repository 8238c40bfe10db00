/** Change sets: changes of records that proxies make in the source, exactly once, and in SQL. */
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { getBase, updateSettings } from "../../../core/control/bases";
import {
  type ChangeSet,
  claimChangeSet,
  createChangeSet,
  decideChangeSet,
  getChangeSet,
  listChangeItems,
  newAwaitedSet,
  recordOutcomes,
  recordSent,
  undoChangeSet,
  unfinishedItems,
} from "../../../core/control/change-sets";
import { fuzzRuns } from "../../support/fuzz";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";
import { createTasksBase, recordsInSource } from "../../support/tasks-base";

let stack: ProxyStack;

beforeAll(async () => {
  stack = await proxyStack({ UPSTREAM_TIMEOUT_MS: "1000" });
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => stack.sandbox.control.clearFaults());

type Operations = Parameters<typeof createChangeSet>[2]["operations"];

/** A base with records `Task 0` … and their people, connected and synced, whose change sets are on. */
async function tasks(count = 3) {
  const { control } = stack.sandbox;
  const sourceBaseId = createTasksBase(control, count);
  const replicated = await stack.connect(sourceBaseId);
  await replicated.sync();
  await updateSettings(stack.managed, replicated.base, { changeSets: true });
  const base = await getBase(stack.ctx.db, replicated.base.id);
  const inSource = (tableName?: string) => recordsInSource(control, sourceBaseId, tableName);
  const ended = async ({ id }: ChangeSet) => {
    await until(async () => (await getChangeSet(stack.ctx.db, base.id, id)).endedAt !== null, {
      what: "the change set has ended",
      timeoutMs: 40_000,
    });
    return getChangeSet(stack.ctx.db, base.id, id);
  };
  return {
    base,
    sourceBaseId,
    inSource,
    ended,
    ids: inSource().map(({ id }) => id),
    rows: () => replicated.rows("tasks"),
    create: (operations: Operations, more: object = {}) =>
      createChangeSet(stack.ctx, base, { operations, ...more }),
    make: async (operations: Operations, more: object = {}) =>
      ended(await createChangeSet(stack.ctx, base, { operations, ...more })),
    items: ({ id }: ChangeSet) => listChangeItems(stack.ctx, id, { from: 0, limit: 1000 }),
  };
}

type Scene = Awaited<ReturnType<typeof tasks>>;

const named = (records: { fields: Record<string, unknown> }[]) =>
  records.map(({ fields }) => fields.Name).sort();

function callsOf(sourceBaseId: string, method: string): number {
  return stack.sandbox.control
    .log()
    .filter((call) => call.method === method && call.path.startsWith(`/v0/${sourceBaseId}/Tasks`)).length;
}

test("operations are made in their order, ten to a call, and are in SQL when the set has ended; undoing restores all", async () => {
  const at = await tasks(12);
  const before = at.inSource();
  const set = await at.make([
    ...Array.from({ length: 25 }, (_, nth) => ({
      operation: "create" as const,
      table: "Tasks",
      fields: { Name: `New ${nth}` },
    })),
    ...at.ids.slice(0, 11).map((record) => ({
      operation: "update" as const,
      table: "Tasks",
      record,
      fields: { Status: "Done", Hours: 9.5 },
    })),
    { operation: "delete" as const, table: "Tasks", record: at.ids[11]! },
  ]);
  expect(set).toMatchObject({ state: "applied", counts: { applied: 37 }, problem: "" });
  expect([callsOf(at.sourceBaseId, "POST"), callsOf(at.sourceBaseId, "PATCH")]).toEqual([3, 2]);
  const rows = await at.rows();
  expect(rows).toHaveLength(36);
  expect(rows.filter(({ status, hours }) => status === "Done" && Number(hours) === 9.5)).toHaveLength(11);

  const undone = await at.ended(await undoChangeSet(stack.ctx, at.base, set.id));
  expect(undone).toMatchObject({ state: "applied", undoes: set.id, counts: { applied: 37 } });
  const cells = (records: typeof before) => records.map(({ fields }) => JSON.stringify(fields)).sort();
  expect(cells(at.inSource())).toEqual(cells(before));
  expect(await at.rows()).toHaveLength(12);
});

test("a record can link to one that the same set creates", async () => {
  const at = await tasks(0);
  const set = await at.make([
    { operation: "create", table: "Tasks", fields: { Name: "First" } },
    { operation: "create", table: "Tasks", fields: { Name: "Second" } },
    { operation: "create", table: "People", fields: { Name: "Ada", Tasks: [{ created_by: 1 }] } },
  ]);
  expect(await at.items(set)).toMatchObject([{ error: "" }, { error: "" }, { error: "" }]);
  const second = at.inSource().find(({ fields }) => fields.Name === "Second")!;
  expect(at.inSource("People")[0]!.fields.Tasks).toEqual([second.id]);
});

test("a record that Airtable refuses does not stop the others, and has its error", async () => {
  const at = await tasks(0);
  const set = await at.make(
    Array.from({ length: 10 }, (_, nth) => ({
      operation: "create" as const,
      table: "Tasks",
      fields: { Name: `Task ${nth}`, Status: nth === 6 ? "No such choice" : "Open" },
    })),
  );
  expect(set).toMatchObject({ state: "partly", counts: { applied: 9, refused: 1 } });
  expect((await at.items(set))[6]).toMatchObject({
    state: "refused",
    errorType: "INVALID_MULTIPLE_CHOICE_OPTIONS",
    error: expect.stringContaining("No such choice"),
  });
  expect(at.inSource()).toHaveLength(9);
  // Airtable's message quotes the cell.
  const stored = await stack.ctx
    .db`select change_items::text as item from change_items where set_id = ${set.id}`;
  expect(stored.map((row) => row.item).join()).not.toContain("No such choice");
});

test("an operation whose record has other values than expected, or is gone, is refused, and changes nothing", async () => {
  const at = await tasks(3);
  const [first, second] = at.ids;
  const set = await at.make([
    {
      operation: "update",
      table: "Tasks",
      record: first!,
      fields: { Hours: 5 },
      expected: { Status: "Done" },
    },
    { operation: "delete", table: "Tasks", record: second!, expected: { Name: "Task 1", Hours: 1 } },
    { operation: "update", table: "Tasks", record: "recAAAAAAAAAAAAAA", fields: { Hours: 5 } },
  ]);
  expect(await at.items(set)).toMatchObject([
    { state: "refused", errorType: "STALE", error: "The record has other values than expected in Status" },
    { state: "applied" },
    { state: "refused", errorType: "ROW_DOES_NOT_EXIST" },
  ]);
  expect(named(at.inSource())).toEqual(["Task 0", "Task 2"]);
});

test("what somebody has changed since is not undone", async () => {
  const at = await tasks(2);
  const update = (record: string, Hours: number): Operations => [
    { operation: "update", table: "Tasks", record, fields: { Hours } },
  ];
  const set = await at.make([...update(at.ids[0]!, 7), ...update(at.ids[1]!, 7)]);
  await at.make(update(at.ids[0]!, 8));
  const undone = await at.ended(await undoChangeSet(stack.ctx, at.base, set.id));
  expect(undone).toMatchObject({ state: "partly", counts: { applied: 1, refused: 1 } });
  expect(at.inSource().map(({ fields }) => fields.Hours)).toEqual([8, 1]);
});

test("what Airtable has in another form than it was written can be undone, unless somebody has changed it since", async () => {
  const at = await tasks(2);
  const made = await at.make(
    [
      { operation: "create", table: "People", fields: { Name: "Ada", Tasks: ["Task 0"] } },
      { operation: "update", table: "Tasks", record: at.ids[0]!, fields: { Took: "1:30:00", Urgent: "yes" } },
      { operation: "update", table: "Tasks", record: at.ids[1]!, fields: { Took: "1:30:00" } },
    ],
    { typecast: true },
  );
  expect(made).toMatchObject({ state: "applied", counts: { applied: 3 } });
  stack.sandbox.control.updateRecords(at.sourceBaseId, "Tasks", [{ id: at.ids[1]!, fields: { Took: 60 } }]);
  const undone = await at.ended(await undoChangeSet(stack.ctx, at.base, made.id));
  expect(await at.items(undone)).toMatchObject([
    { state: "refused", errorType: "STALE" },
    { state: "applied" },
    { state: "applied" },
  ]);
  expect(at.inSource("People")).toEqual([]);
  expect(at.inSource()[0]!.fields).not.toHaveProperty("Took");
  expect(at.inSource()[1]!.fields).toMatchObject({ Took: 60 });
});

test("a set is undone once, also if two ask at the same time", async () => {
  const at = await tasks(2);
  const set = await at.make([{ operation: "delete", table: "Tasks", record: at.ids[0]! }]);
  const undo = () => undoChangeSet(stack.ctx, at.base, set.id);
  const [one, other] = await Promise.allSettled([undo(), undo()]);
  const [made, refused] = one.status === "fulfilled" ? [one, other] : [other, one];
  expect(refused).toMatchObject({ status: "rejected", reason: { code: "conflict" } });
  const undone = await at.ended((made as PromiseFulfilledResult<ChangeSet>).value);
  await expect(undo()).rejects.toMatchObject({ code: "conflict" });
  expect(named(at.inSource())).toEqual(["Task 0", "Task 1"]);
  await at.ended(await undoChangeSet(stack.ctx, at.base, undone.id));
  expect(named(at.inSource())).toEqual(["Task 1"]);
});

test("an undo that changed nothing can be repeated", async () => {
  const at = await tasks(1);
  const [record] = at.ids as [string];
  const hours = (Hours: number) =>
    stack.sandbox.control.updateRecords(at.sourceBaseId, "Tasks", [{ id: record, fields: { Hours } }]);
  const set = await at.make([{ operation: "update", table: "Tasks", record, fields: { Hours: 7 } }]);
  hours(8);
  expect(await at.ended(await undoChangeSet(stack.ctx, at.base, set.id))).toMatchObject({ state: "failed" });
  hours(7);
  await at.ended(await undoChangeSet(stack.ctx, at.base, set.id));
  expect(at.inSource().map(({ fields }) => fields.Hours)).toEqual([0]);
});

test("nothing of a proposal is made until it is approved; one that is rejected is never made", async () => {
  const at = await tasks(0);
  const propose = (Name: string) =>
    at.create([{ operation: "create", table: "Tasks", fields: { Name } }], { isProposal: true });
  const [good, bad] = [await propose("Good"), await propose("Bad")];
  expect([good.state, bad.state]).toEqual(["proposed", "proposed"]);
  await decideChangeSet(stack.ctx, at.base, bad.id, "reject");
  await expect(decideChangeSet(stack.ctx, at.base, bad.id, "approve")).rejects.toMatchObject({
    code: "conflict",
  });
  const approvals = await Promise.allSettled(
    [1, 2].map(() => decideChangeSet(stack.ctx, at.base, good.id, "approve")),
  );
  expect(approvals.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  await at.ended(good);
  expect(named(at.inSource())).toEqual(["Good"]);
  expect(await at.items(bad)).toMatchObject([{ state: "not_applied" }]);
});

test("a canceled set ends with the results of what was sent", async () => {
  const at = await tasks(0);
  stack.sandbox.control.addFault({ kind: "rate_limited", count: 1, base: at.sourceBaseId, method: "POST" });
  const set = await at.create([{ operation: "create", table: "Tasks", fields: { Name: "Late" } }]);
  await until(async () => (await getChangeSet(stack.ctx.db, at.base.id, set.id)).problem !== "", {
    what: "the set waits",
  });
  await decideChangeSet(stack.ctx, at.base, set.id, "cancel");
  expect(await at.ended(set)).toMatchObject({ state: "canceled", counts: { not_applied: 1 } });
  expect(at.inSource()).toEqual([]);
});

test("what was sent when a set is canceled gets its result although Airtable has not answered", async () => {
  const at = await tasks(0);
  stack.sandbox.control.addFault({
    kind: "hang",
    count: 1,
    base: at.sourceBaseId,
    method: "POST",
    delayMs: 2000,
  });
  const set = await at.create([{ operation: "create", table: "Tasks", fields: { Name: "Made" } }]);
  await until(async () => (await at.items(set))[0]!.state === "sent", { what: "the record is sent" });
  await decideChangeSet(stack.ctx, at.base, set.id, "cancel");
  expect(await at.ended(set)).toMatchObject({ state: "canceled", counts: { applied: 1 } });
  expect(named(at.inSource())).toEqual(["Made"]);
});

test("nothing is made while the setting is off: what was approved before waits", async () => {
  const at = await tasks(0);
  const create: Operations = [{ operation: "create", table: "Tasks", fields: { Name: "Later" } }];
  const [first, second] = [
    await at.create(create, { isProposal: true }),
    await at.create(create, { isProposal: true }),
  ];
  const turn = async (changeSets: boolean) => {
    await updateSettings(stack.managed, await getBase(stack.ctx.db, at.base.id), { changeSets });
    return getBase(stack.ctx.db, at.base.id);
  };
  await decideChangeSet(stack.ctx, await turn(true), first.id, "reject");
  const off = await turn(false);
  await expect(decideChangeSet(stack.ctx, off, second.id, "approve")).rejects.toMatchObject({
    code: "conflict",
  });
  await stack.ctx.db`update change_sets set state = 'approved', decided_at = now() where id = ${second.id}`;
  // A set of another base that is made later shows that proxies have looked.
  const other = await tasks(0);
  await other.make(create);
  expect(at.inSource()).toEqual([]);
  await turn(true);
  await letGo(second);
  expect(await at.ended(second)).toMatchObject({ state: "applied" });
});

test("a set that waits for its setting for a day ends without being made", async () => {
  const at = await tasks(0);
  const set = await at.create([{ operation: "create", table: "Tasks", fields: { Name: "Late" } }], {
    isProposal: true,
  });
  await updateSettings(stack.managed, at.base, { changeSets: false });
  await stack.ctx.db`
    update change_sets set state = 'approved', decided_at = now() - interval '25 hours' where id = ${set.id}`;
  await letGo(set);
  expect(await at.ended(set)).toMatchObject({ state: "failed", counts: { not_applied: 1 } });
  expect((await at.items(set))[0]!.error).toBe("Not sent for a day");
  expect(at.inSource()).toEqual([]);
});

test("sets that their source keeps waiting delay no other base of the account", async () => {
  const create: Operations = [{ operation: "create", table: "Tasks", fields: { Name: "New" } }];
  const { db } = stack.ctx;
  const last = await tasks(0);
  for (let nth = 0; nth < 5; nth++) {
    const at = await tasks(0);
    await db`update bases set account_id = ${last.base.accountId} where id = ${at.base.id}`;
    const fault = { kind: "unauthorized", base: at.sourceBaseId, method: "POST", count: 1000 } as const;
    stack.sandbox.control.addFault(fault);
    const { id } = await at.create(create);
    const waits = async () => (await getChangeSet(db, at.base.id, id)).problem !== "";
    await until(waits, { what: "the set waits" });
  }
  expect(await last.make(create)).toMatchObject({ state: "applied" });
}, 60_000);

test("a proxy that stood still, and takes over from itself or from others, sends nothing twice", async () => {
  const at = await tasks(0);
  await using _other = await stack.startAnother();
  const names = Array.from({ length: 40 }, (_, nth) => `Task ${nth}`);
  const set = await at.create(
    names.map((Name) => ({ operation: "create" as const, table: "Tasks", fields: { Name } })),
  );
  await until(
    async () => {
      await letGo(set);
      return (await getChangeSet(stack.ctx.db, at.base.id, set.id)).endedAt !== null;
    },
    { what: "the set has ended", timeoutMs: 40_000 },
  );
  expect(await at.ended(set)).toMatchObject({ state: "applied", counts: { applied: 40 } });
  expect(named(at.inSource())).toEqual(names.toSorted());
});

test("change sets must be turned on, and say what is wrong with an operation", async () => {
  const at = await tasks(1);
  const refused = (operations: Operations, message: RegExp) =>
    expect(at.create(operations)).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(message),
    });
  await refused([], /1 to 10000/);
  await refused(
    [{ operation: "update", table: "Tasks", record: "Task 1", fields: { Hours: 1 } }],
    /operations\[0\]/,
  );
  await refused(
    [{ operation: "create", table: "Tasks", fields: { Tasks: [{ created_by: 0 }] } }],
    /earlier create/,
  );
  await updateSettings(stack.managed, at.base, { changeSets: false });
  const off = await getBase(stack.ctx.db, at.base.id);
  const operations: Operations = [{ operation: "create", table: "Tasks", fields: {} }];
  await expect(createChangeSet(stack.ctx, off, { operations })).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("change_sets"),
  });
});

/** A proxy has taken the set, and died after it recorded that the operations are sent. */
async function sentByDead(at: Scene, operations: Operations): Promise<ChangeSet> {
  const { ctx } = stack;
  const set = await at.create(operations, { isProposal: true });
  // No proxy is told.
  await ctx.db`update change_sets set state = 'approved', decided_at = '-infinity' where id = ${set.id}`;
  const held = (await claimChangeSet(ctx.db))!;
  expect(held.id).toBe(set.id);
  await ctx.db`update change_sets set decided_at = now() where id = ${set.id}`;
  const items = await unfinishedItems(ctx, set.id, 100);
  expect(
    await recordSent(
      ctx,
      held,
      items.map(({ id }) => ({ id, before: undefined })),
    ),
  ).toBe(true);
  return set;
}

const letGo = async ({ id }: ChangeSet) => {
  await stack.ctx.db`update change_sets set held_until = now() where id = ${id}`;
  await stack.ctx.db.notify("basetide_change_sets", id);
};

const api = (method: string, at: Scene, body: unknown) =>
  fetch(`${stack.sandbox.url}/v0/${at.sourceBaseId}/Tasks`, {
    method,
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("after a proxy has died, what Airtable has made of what it had sent is found, and the rest is sent again", async () => {
  const at = await tasks(2);
  const set = await sentByDead(at, [
    { operation: "create", table: "Tasks", fields: { Name: "Made", Hours: 4 } },
    { operation: "create", table: "People", fields: { Name: "Not made" } },
    { operation: "update", table: "Tasks", record: at.ids[0]!, fields: { Hours: 8 } },
    { operation: "delete", table: "Tasks", record: at.ids[1]! },
  ]);
  await api("POST", at, { records: [{ fields: { Name: "Made", Hours: 4 } }] });
  await letGo(set);
  expect(await at.ended(set)).toMatchObject({ state: "applied", counts: { applied: 4 } });
  expect(named(at.inSource())).toEqual(["Made", "Task 0"]);
  expect(named(at.inSource("People"))).toEqual(["Not made"]);
  expect(at.inSource().find(({ id }) => id === at.ids[0])!.fields.Hours).toBe(8);
});

test("a create that fits more new records than were sent is left to people", async () => {
  const at = await tasks(0);
  const set = await sentByDead(at, [{ operation: "create", table: "Tasks", fields: { Name: "Same" } }]);
  for (const _ of [1, 2]) await api("POST", at, { records: [{ fields: { Name: "Same" } }] });
  await letGo(set);
  expect(await at.ended(set)).toMatchObject({ state: "partly", counts: { unknown: 1 } });
  expect((await at.items(set))[0]).toMatchObject({ errorType: "AMBIGUOUS" });
  expect(at.inSource()).toHaveLength(2);
});

test("a create whose record another set already changes is found all the same", async () => {
  const at = await tasks(0);
  const set = await sentByDead(at, [{ operation: "create", table: "Tasks", fields: { Name: "New" } }]);
  await api("POST", at, { records: [{ fields: { Name: "New" } }] });
  const [{ id } = { id: "" }] = at.inSource();
  const change = await at.create([
    { operation: "update", table: "Tasks", record: id, fields: { Status: "Done" } },
  ]);
  await letGo(set);
  expect(await at.ended(set)).toMatchObject({ state: "applied" });
  expect(await at.ended(change)).toMatchObject({ state: "applied" });
  expect(at.inSource()).toMatchObject([{ fields: { Name: "New", Status: "Done" } }]);
});

test("a record is not taken for that of a create while the call of another set may have made it", async () => {
  const at = await tasks(0);
  const { ctx } = stack;
  const { db } = ctx;
  await db`update bases set sql_writes = true where id = ${at.base.id}`;
  const asked = { baseId: at.base.id, sqlRole: "writer", applicationName: "", note: "", typecast: false };
  const operations: Operations = [{ operation: "create", table: "Tasks", fields: { Name: "Twice" } }];
  const [lost, other] = [1, 2].map(() => newAwaitedSet(ctx, { ...asked, operations, sending: 1 }));
  await lost!.record();
  await other!.record();
  // The other call is under way, and has had its effect.
  await db`update change_items set sent_at = now() + interval '1 hour' where set_id = ${other!.set.id}`;
  await api("POST", at, { records: [{ fields: { Name: "Twice" } }] });
  const [{ id: recordId } = { id: "" }] = at.inSource();
  await db`update change_sets set held_until = now() where id = ${lost!.set.id}`;
  await db.notify("basetide_change_sets", lost!.set.id);
  const rests = async () => {
    const [row] = await db`select from change_sets where id = ${lost!.set.id} and rests_until is not null`;
    return row !== undefined;
  };
  await until(rests, { what: "the look-up waits for the other call" });
  await recordOutcomes(ctx, other!.set.id, [{ id: other!.items[0]!.id, state: "applied", recordId }]);
  const [item] = await until(
    async () => {
      const items = await listChangeItems(ctx, lost!.set.id, { from: 0, limit: 1 });
      return items[0]?.state !== "sent" && items;
    },
    { what: "the create has a result", timeoutMs: 30_000 },
  );
  expect(item).toMatchObject({ state: "not_applied", recordId: null });
});

test("a proxy that stops leaves its set to another one", async () => {
  const at = await tasks(0);
  const other = await stack.startAnother();
  const sets = await Promise.all(
    [0, 1, 2].map((nth) =>
      at.create(
        Array.from({ length: 30 }, (_, one) => ({
          operation: "create" as const,
          table: "Tasks",
          fields: { Name: `${nth}-${one}` },
        })),
      ),
    ),
  );
  await other[Symbol.asyncDispose]();
  for (const set of sets) expect((await at.ended(set)).state).toBe("applied");
  expect(new Set(named(at.inSource())).size).toBe(90);
  expect(at.inSource()).toHaveLength(90);
});

test.each<{ what: string; table?: string; fields: Record<string, unknown> }>([
  { what: "a link by name", table: "People", fields: { Name: "Ada", Tasks: ["Task 0"] } },
  { what: "a number as text", fields: { Name: "New", Hours: "9.50" } },
  { what: "a day as people write it", fields: { Name: "New", Due: "January 31, 2026" } },
  { what: "a duration as text", fields: { Name: "New", Took: "1:30" } },
  { what: "a checkbox as text", fields: { Name: "New", Urgent: "yes" } },
])(
  "a create that Airtable made without an answer is not made again where it has $what in another form",
  async ({ table = "Tasks", fields }) => {
    const at = await tasks(1);
    stack.sandbox.control.addFault({
      kind: "reset",
      when: "after",
      count: 1,
      base: at.sourceBaseId,
      method: "POST",
    });
    const set = await at.make([{ operation: "create", table, fields }], { typecast: true });
    const made = at.inSource(table).filter(({ fields: { Name } }) => Name === fields.Name);
    expect(made).toHaveLength(1);
    const [item] = await at.items(set);
    // A day in another form is recognized in some time zones.
    if (item!.state === "applied") expect(item!.recordId).toBe(made[0]!.id);
    else
      expect(item).toMatchObject({
        state: "unknown",
        errorType: "AMBIGUOUS",
        error: expect.stringContaining(made[0]!.id),
      });
  },
);

test.each([
  { what: "another cell", fields: { Status: "Done" }, says: "may be this one" },
  { what: "its name", fields: { Name: "Renamed" }, says: "made others of the same call" },
])(
  "a create that Airtable made without an answer is not made again where somebody has changed $what",
  async ({ fields, says }) => {
    const at = await tasks(0);
    stack.sandbox.control.addFault({
      kind: "reset",
      when: "after",
      count: 1,
      base: at.sourceBaseId,
      method: "POST",
    });
    const set = await at.create(
      ["Kept", "Changed"].map((Name) => ({
        operation: "create",
        table: "Tasks",
        fields: { Name, Status: "Open" },
      })),
    );
    await until(async () => at.inSource().length === 2, { what: "Airtable has made them", intervalMs: 5 });
    const { id } = at.inSource().find(({ fields: { Name } }) => Name === "Changed")!;
    stack.sandbox.control.updateRecords(at.sourceBaseId, "Tasks", [{ id, fields }]);
    await at.ended(set);
    expect(at.inSource()).toHaveLength(2);
    expect(await at.items(set)).toMatchObject([
      { state: "applied" },
      { state: "unknown", errorType: "AMBIGUOUS", error: expect.stringContaining(says) },
    ]);
  },
);

/** Histories that are made at the same time, since each mostly waits, with its own base. */
const HISTORIES = 4;
test("of a call that Airtable has refused because of one record, only what was sent again is looked up", async () => {
  const at = await tasks(0);
  stack.sandbox.control.addFault({
    kind: "reset",
    when: "after",
    after: 1,
    count: 1,
    base: at.sourceBaseId,
    method: "POST",
  });
  const set = await at.make(
    ["Open", "Done", "Open", "None"].map((Status, nth) => ({
      operation: "create",
      table: "Tasks",
      fields: { Name: `New ${nth}`, Status },
    })),
  );
  expect((await at.items(set)).map(({ state }) => state)).toEqual([
    "applied",
    "applied",
    "applied",
    "refused",
  ]);
  expect(named(at.inSource())).toEqual(["New 0", "New 1", "New 2"]);
});

test("an update that replaces a file by another of its name, and that Airtable has not made, is made", async () => {
  const at = await tasks(1);
  const files = () => at.inSource()[0]!.fields.Files as { id: string; filename: string }[];
  const replace = (host: string) =>
    at.make([
      {
        operation: "update",
        table: "Tasks",
        record: at.ids[0]!,
        fields: { Files: [{ url: `https://${host}/a.txt`, filename: "a.txt" }] },
      },
    ]);
  await replace("one.example");
  const [before] = files();
  const fault = { kind: "reset", when: "before", count: 1, base: at.sourceBaseId, method: "PATCH" } as const;
  stack.sandbox.control.addFault(fault);
  expect(await replace("other.example")).toMatchObject({ state: "applied" });
  const [after] = files();
  expect(after).toMatchObject({ filename: "a.txt" });
  expect(after!.id).not.toBe(before!.id);
});

test("what was sent is unknown, not refused, where Airtable refuses the look-up", async () => {
  const at = await tasks(1);
  const { control } = stack.sandbox;
  const base = at.sourceBaseId;
  for (const [method, operation] of [
    ["POST", { operation: "create", table: "Tasks", fields: { Name: "New" } }],
    ["PATCH", { operation: "update", table: "Tasks", record: at.ids[0]!, fields: { Hours: 7 } }],
  ] as const) {
    control.addFault({ kind: "reset", when: "after", count: 1, base, method });
    const set = await at.create([operation]);
    await until(async () => (await at.items(set))[0]!.state === "sent", {
      what: "it is sent",
      intervalMs: 5,
    });
    const path = `/v0/${base}/Tasks`;
    const { id } = control.addFault({ kind: "forbidden", path, method: "GET" });
    expect(await at.ended(set)).toMatchObject({ state: "partly", counts: { unknown: 1 } });
    control.clearFaults(id);
  }
  expect(at.inSource()).toMatchObject([{ fields: { Hours: 7 } }, { fields: { Name: "New" } }]);
});

test("a create is not made again before it is known which field names its record", async () => {
  const at = await tasks(0);
  const { control } = stack.sandbox;
  const base = at.sourceBaseId;
  control.addFault({ kind: "reset", when: "after", count: 1, base, method: "POST" });
  control.addFault({ kind: "status_500", count: 2, path: `/meta/bases/${base}` });
  const set = await at.create([
    { operation: "create", table: "Tasks", fields: { Name: "New", Status: "Open" } },
  ]);
  await until(async () => at.inSource().length === 1, { what: "Airtable has made it", intervalMs: 5 });
  control.updateRecords(base, "Tasks", [{ id: at.inSource()[0]!.id, fields: { Status: "Done" } }]);
  await at.ended(set);
  expect(at.inSource()).toHaveLength(1);
  expect(await at.items(set)).toMatchObject([{ state: "unknown", errorType: "AMBIGUOUS" }]);
});

test("an update without an answer keeps what it has replaced, also where Airtable has it in another form", async () => {
  const at = await tasks(2);
  const { control } = stack.sandbox;
  const base = at.sourceBaseId;
  control.updateRecords(
    base,
    "Tasks",
    at.ids.map((id) => ({ id, fields: { Took: 60 } })),
  );
  control.addFault({ kind: "reset", when: "after", count: 1, base, method: "PATCH" });
  const update = (record: string) => ({
    operation: "update" as const,
    table: "Tasks",
    record,
    fields: { Took: "1:30:00" },
  });
  const set = await at.make(at.ids.map(update), { typecast: true });
  expect(set).toMatchObject({ state: "applied" });
  expect(callsOf(base, "PATCH")).toBe(1);
  await at.ended(await undoChangeSet(stack.ctx, at.base, set.id));
  expect(at.inSource().map(({ fields }) => fields.Took)).toEqual([60, 60]);
});

const FAULTS = ["status_500", "status_502_html", "reset", "hang", "broken_json", "truncated"] as const;

test(
  "whatever fails on the way, each operation is made once",
  async () => {
    const history = () =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom("create" as const, "update" as const, "delete" as const), {
            minLength: 1,
            maxLength: 25,
          }),
          fc.array(
            fc.record({
              kind: fc.constantFrom(...FAULTS),
              when: fc.constantFrom("before" as const, "after" as const),
              after: fc.nat({ max: 4 }),
            }),
            { minLength: 1, maxLength: 3 },
          ),
          async (kinds, faults) => {
            const at = await tasks(kinds.length);
            const operations = kinds.map((operation, nth) => {
              const record = at.ids[nth]!;
              if (operation === "create")
                return { operation, table: "Tasks", fields: { Name: `New ${nth}` } };
              if (operation === "delete") return { operation, table: "Tasks", record };
              return { operation, table: "Tasks", record, fields: { Hours: 100 + nth } };
            });
            const { control } = stack.sandbox;
            const added = faults.map((fault) =>
              control.addFault({ ...fault, count: 1, base: at.sourceBaseId, delayMs: 2000 }),
            );
            const set = await at.make(operations);
            for (const { id } of added) control.clearFaults(id);
            expect(set).toMatchObject({ state: "applied", counts: { applied: kinds.length } });
            const records = at.inSource();
            for (const [nth, kind] of kinds.entries()) {
              const record = records.find(({ id }) => id === at.ids[nth]);
              if (kind === "create")
                expect(records.filter(({ fields }) => fields.Name === `New ${nth}`)).toHaveLength(1);
              else if (kind === "delete") expect(record).toBeUndefined();
              else expect(record!.fields.Hours).toBe(100 + nth);
            }
          },
        ),
        { numRuns: fuzzRuns, endOnFailure: true },
      );
    await Promise.all(Array.from({ length: HISTORIES }, history));
  },
  180_000 * fuzzRuns,
);
