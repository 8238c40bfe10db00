/** Choosing what is copied: in the API, and in the console without JavaScript. */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { getBase, type ManagementContext, selectingOf, sourceAccess } from "../../../core/control/bases";
import { asker, authByHeader } from "../../support/console";
import { GOOD_KEY, managementApi } from "../../support/control-support";

const api = managementApi();
const { call, connect, newAccount } = api;

const ITEMS = { table_id: "tblItems", copied: true, view_id: null, omitted_fields: [], hashed_fields: [] };

test("the API reads and replaces the selection, and asks for a sync", async () => {
  const account = await newAccount();
  const base = (await connect(account.token)).body as { id: string };
  const path = `/api/v1/bases/${base.id}/selection`;
  const before = await call("GET", path, { token: account.token });
  expect(before).toMatchObject({
    status: 200,
    body: { selection: { new_tables: "copy", tables: [] }, unanswered: [] },
  });
  expect(before.body.available[0]).toMatchObject({
    table_id: "tblItems",
    fields: [
      { field_id: "fldName", is_primary: true, may_be_hashed: true },
      { field_id: "fldEmail", type: "email", may_be_hashed: true },
      { field_id: "fldFiles", may_be_hashed: false },
    ],
    views: [{ view_id: "viwOpen", name: "Open ones" }],
  });
  const selection = {
    new_tables: "ask",
    tables: [{ ...ITEMS, view_id: "viwOpen", omitted_fields: ["fldFiles"], hashed_fields: ["fldEmail"] }],
  };
  const changed = await call("PUT", path, { token: account.token, body: selection });
  expect(changed).toMatchObject({
    status: 200,
    body: { selection, unanswered: [{ table_id: "tblNotes", name: "Notes" }] },
  });
  expect(api.control.requested.at(-1)).toBe(base.id);
  // What was read can be written.
  const again = await call("PUT", path, { token: account.token, body: changed.body.selection });
  expect(again.body.selection).toEqual(changed.body.selection);
  const whole = await call("PUT", path, {
    token: account.token,
    body: { new_tables: "copy", tables: [ITEMS] },
  });
  expect(whole.body.selection).toEqual({ new_tables: "copy", tables: [] });
  const [entry] = await api.control.ctx.db`
    select details from audit_log where action = 'base.selection_changed' order by id limit 1`;
  expect(entry!.details).toMatchObject({
    tables: 1,
    of_tables: 2,
    omitted_fields: 1,
    hashed_fields: 1,
    views: 1,
  });
});

test("a base is connected with a selection of what its tables are before; a wrong one connects nothing", async () => {
  const account = await newAccount();
  const asked = { platform: "airtable", api_key: GOOD_KEY, base_id: "appOne" };
  const tables = await call("POST", "/api/v1/source-tables", { token: account.token, body: asked });
  expect(tables.body.map(({ table_id }: { table_id: string }) => table_id)).toEqual(["tblItems", "tblNotes"]);
  const selection = { new_tables: "ask", tables: [{ ...ITEMS, hashed_fields: ["fldEmail"] }] };
  const wrong = { ...selection, tables: [{ ...ITEMS, hashed_fields: ["fldX"] }] };
  const refused = await connect(account.token, { selection: wrong });
  expect(refused).toMatchObject({
    status: 422,
    body: { error: { message: expect.stringContaining("fldX") } },
  });
  expect((await call("GET", "/api/v1/bases", { token: account.token })).body).toEqual([]);
  const made = await connect(account.token, { selection });
  expect(made).toMatchObject({ status: 201, body: { selection } });
  const base = await getBase(api.control.ctx.db, made.body.id);
  expect(base.unansweredTables).toEqual([{ id: "tblNotes", name: "Notes" }]);
  // It can be read by a worker: the key of its hashes is there.
  expect(selectingOf(api.control.ctx, await sourceAccess(api.control.ctx, base.id))).toBeDefined();
});

test("the API rejects what cannot be done, names the part, and changes nothing", async () => {
  const account = await newAccount();
  const base = (await connect(account.token)).body as { id: string };
  const of = (...tables: object[]) => ({ new_tables: "copy", tables });
  const cases: [body: object, message: RegExp][] = [
    [of({ table_id: "tblX", copied: true }), /no table tblX/],
    [of({ ...ITEMS, view_id: "viwX" }), /no view viwX/],
    [of({ ...ITEMS, omitted_fields: ["fldName"] }), /"Name".*primary/],
    [of(ITEMS, ITEMS), /tblItems is listed twice/],
    [
      of({ ...ITEMS, omitted_fields: ["fldEmail"], hashed_fields: ["fldEmail"] }),
      /field of the table tblItems is listed/,
    ],
    [of({ ...ITEMS, fields: [] }), /fields/],
    [{ new_tables: "never", tables: [] }, /new_tables/],
  ];
  for (const [body, message] of cases) {
    const answer = await call("PUT", `/api/v1/bases/${base.id}/selection`, { token: account.token, body });
    expect(answer).toMatchObject({
      status: 422,
      body: { error: { code: "invalid_request", message: expect.stringMatching(message) } },
    });
  }
  expect((await getBase(api.control.ctx.db, base.id)).selection).toBeNull();
});

test("the pages choose tables, fields and a view by plain forms, and show what is wrong with one", async () => {
  const account = await newAccount();
  const base = (await connect(account.token)).body as { id: string };
  const { ctx } = api.control;
  const ask = asker(consoleApp(ctx as ManagementContext, authByHeader()));
  const path = `/bases/${base.id}/selection`;
  const stored = async () => (await getBase(ctx.db, base.id)).selection;

  const page = await ask(path, { account });
  expect(page.status).toBe(200);
  for (const part of ["Items", "Notes", "All fields", 'name="table_tblItems"'])
    expect(page.text).toContain(part);
  expect((await ask(`${path}?q=note`, { account })).text).not.toContain("table_tblItems");

  // A form without the box of Notes, which is shown: it is no longer copied.
  const tables = { new_tables: "ask", shown: "tblItems tblNotes", table_tblItems: "on", q: "" };
  expect((await ask(path, { account, form: tables })).status).toBe(303);
  expect(await stored()).toEqual({
    newTables: "ask",
    tables: { tblItems: { copied: true }, tblNotes: { copied: false } },
  });
  // Of all shown at once; the others stay as they are.
  await ask(path, { account, form: { new_tables: "ask", shown: "tblNotes", set: "copied", q: "note" } });
  expect((await stored())!.tables.tblNotes).toEqual({ copied: true });

  const fields = await ask(`${path}?table=tblItems`, { account });
  for (const part of ["E-mail", "Open ones", 'name="field_fldEmail"']) expect(fields.text).toContain(part);
  const form = {
    table: "tblItems",
    view: "viwOpen",
    field_fldEmail: "hashed",
    field_fldFiles: "omitted",
    q: "",
  };
  expect((await ask(path, { account, form })).status).toBe(303);
  expect((await stored())!.tables.tblItems).toEqual({
    copied: true,
    viewId: "viwOpen",
    fields: { fldEmail: "hashed", fldFiles: "omitted" },
  });
  // Only what may be hashed is, and the primary field cannot be omitted.
  await ask(path, { account, form: { table: "tblItems", set: "omitted", view: "", q: "" } });
  expect((await stored())!.tables.tblItems!.fields).toEqual({ fldEmail: "omitted", fldFiles: "omitted" });

  const wrong = await ask(path, { account, form: { table: "tblItems", view: "viwX", q: "" } });
  expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining("no view viwX")]);
  const none = await ask(path, { account, form: { ...tables, set: "omitted" } });
  expect([none.status, none.text]).toEqual([422, expect.stringContaining("No table would be copied")]);
  const other = await newAccount();
  expect((await ask(path, { account: other })).status).toBe(404);
  expect((await ask(path, { account: other, form })).status).toBe(404);
});
