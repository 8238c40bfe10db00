/** Change sets over the management API and in the console; no proxy runs, so what is approved waits. */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createBase, getBase } from "../../../core/control/bases";
import { createChangeSet, getChangeSet } from "../../../core/control/change-sets";
import { asker, authByHeader } from "../../support/console";
import { connectBase, GOOD_KEY, managementApi } from "../../support/control-support";

const api = managementApi();
const { call, newAccount } = api;

const create = { operation: "create", table: "Tasks", fields: { Name: "A secret text" } };

async function connected() {
  const { token } = await newAccount();
  const base = await connectBase(call, token, {});
  expect(base.status).toBe(201);
  const path = `/api/v1/bases/${base.body.id}`;
  return { token, path, sets: `${path}/change-sets` };
}

test("a set is made only where the base allows it, and only of well-formed operations", async () => {
  const { token, path, sets } = await connected();
  const post = (body: unknown) => call("POST", sets, { token, body });
  const off = await post({ operations: [create] });
  expect([off.status, off.body.error.code]).toEqual([409, "conflict"]);
  expect(off.body.error.message).toContain("change_sets");
  expect((await call("PATCH", path, { token, body: { change_sets: true } })).body.settings.change_sets).toBe(
    true,
  );
  const wrong = await post({ operations: [create, { ...create, record: "recAAAAAAAAAAAAAA" }] });
  expect([wrong.status, wrong.body.error.code]).toEqual([422, "invalid_request"]);
  expect(wrong.body.error.message).toContain("operations[1]: a create has neither");
  const { operation: _, ...unnamed } = create;
  expect((await post({ operations: [unnamed] })).status).toBe(422);
  expect((await post({ operations: [create] })).status).toBe(201);
});

test("a proposal waits, is approved once, and can be canceled; its cells are stored encrypted", async () => {
  const { token, path, sets } = await connected();
  await call("PATCH", path, { token, body: { change_sets: true } });
  const body = { operations: [create, create], note: "Two tasks", proposal: true };
  const made = (await call("POST", sets, { token, body })).body;
  expect(made).toMatchObject({
    id: expect.stringMatching(/^chs_/),
    state: "proposed",
    note: "Two tasks",
    counts: { waiting: 2 },
    decided_at: null,
    ended_at: null,
  });
  expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(7 * 86_400_000);
  const stored = await api.control.ctx.db`select encrypted_cells from change_items`;
  expect(stored.map((row) => row.encrypted_cells).join()).not.toContain("secret");

  const one = `${sets}/${made.id}`;
  const decide = async (decision: string) => {
    const answer = await call("POST", `${one}/${decision}`, { token });
    return [answer.status, answer.body.state ?? answer.body.error.message];
  };
  expect(await decide("cancel")).toEqual([409, "This change set is proposed"]);
  expect(await decide("approve")).toEqual([200, "approved"]);
  expect(await decide("approve")).toEqual([409, "This change set is approved"]);
  expect(await decide("cancel")).toEqual([200, "canceled"]);
  expect((await call("POST", `${one}/undo`, { token })).status).toBe(409);
  expect((await call("GET", one, { token })).body).toMatchObject({
    state: "canceled",
    counts: { not_applied: 2 },
  });
  expect((await call("GET", `${one}/items?from=1`, { token })).body).toEqual({
    items: [
      {
        position: 1,
        operation: "create",
        table: "Tasks",
        record: null,
        fields: { Name: "A secret text" },
        expected: null,
        state: "not_applied",
        error_type: "",
        error: "",
      },
    ],
    next: null,
  });
  expect((await call("GET", sets, { token })).body).toHaveLength(1);
});

test("a proposal has as many operations as are shown to the person who decides, a set is read page by page", async () => {
  const { token, path, sets } = await connected();
  await call("PATCH", path, { token, body: { change_sets: true } });
  const operations = Array.from({ length: 501 }, () => create);
  const refused = await call("POST", sets, { token, body: { operations, proposal: true } });
  expect([refused.status, refused.body.error]).toMatchObject([
    422,
    { code: "invalid_request", message: "A proposal has 1 to 500 operations" },
  ]);
  const most = { operations: operations.slice(1), proposal: true };
  const { id } = (await call("POST", sets, { token, body: most })).body;
  const shown = (await call("GET", `/api/v1/proposals/${id}`, { token })).body;
  expect(shown.operations).toHaveLength(500);
  const positions: number[] = [];
  const pages: (number | null)[] = [];
  for (let from: number | null = 0; from !== null; pages.push(from)) {
    const { body: page } = await call("GET", `${sets}/${id}/items?from=${from}`, { token });
    positions.push(...page.items.map(({ position }: { position: number }) => position));
    from = page.next;
  }
  expect([positions, pages]).toEqual([[...operations.keys()].slice(0, 500), [100, 200, 300, 400, null]]);
  expect((await call("POST", sets, { token, body: { operations } })).status).toBe(201);
});

test("a proposal that nobody has approved for seven days is expired", async () => {
  const { token, path, sets } = await connected();
  await call("PATCH", path, { token, body: { change_sets: true } });
  const { id } = (await call("POST", sets, { token, body: { operations: [create], proposal: true } })).body;
  await api.control.ctx.db`update change_sets set expires_at = now() where id = ${id}`;
  expect((await call("GET", `${sets}/${id}`, { token })).body.state).toBe("expired");
  const late = await call("POST", `${sets}/${id}/approve`, { token });
  expect([late.status, late.body.error.message]).toEqual([409, "This change set is expired"]);
});

test("a page shows what a proposal changes, from what to what, and its buttons decide", async () => {
  const account = await api.control.addAccount("proposals@example.com");
  const ask = asker(consoleApp(api.control.ctx, authByHeader()));
  const { ctx } = api.control;
  const connected = await createBase(ctx, account.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
    settings: { changeSets: true },
  });
  const base = await getBase(ctx.db, connected.id);
  const record = "recAAAAAAAAAAAAAA";
  const { id } = await createChangeSet(ctx, base, {
    note: "Close it <b>",
    isProposal: true,
    operations: [
      {
        operation: "update",
        table: "Tasks",
        record,
        fields: { Status: "Done" },
        expected: { Status: "Open" },
      },
    ],
  });
  const path = `/bases/${base.id}/changes`;
  expect((await ask(path, { account })).text).toContain("Close it &lt;b>");
  const page = (await ask(`${path}/${id}`, { account })).text;
  expect(page).toMatch(/<b>Status<\/b> <del>Open<\/del> → <ins>Done<\/ins>/);
  expect((await ask(`${path}/${id}/approve`, { account, form: {} })).status).toBe(303);
  expect(await getChangeSet(ctx.db, base.id, id)).toMatchObject({ state: "approved" });
  expect((await ask(`${path}/${id}/reject`, { account, form: {} })).status).toBe(409);
  expect((await ask(`${path}/${id}/cancel`, { account, form: {} })).status).toBe(303);
  expect(await getChangeSet(ctx.db, base.id, id)).toMatchObject({ state: "canceled" });
});
