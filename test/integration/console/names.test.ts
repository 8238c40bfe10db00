/** Names of tables and columns: by the API and on their page, checked before anything changes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { listChanges } from "../../../core/control/audit";
import { getBase, replicaTarget } from "../../../core/control/bases";
import { databaseUrl, openReplica } from "../../../core/replica";
import { saveQuery } from "../../../core/sql-editor";
import { asAdmin } from "../../support/admin";
import { asker, authByHeader } from "../../support/console";
import { caller, GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { sourceTable } from "../../support/source-records";
import { syncTables } from "../../support/sync-tables";

let control: TestControl;
let account: Awaited<ReturnType<TestControl["addAccount"]>>;
let id: string;
let call: ReturnType<typeof caller>;
let ask: ReturnType<typeof asker>;

beforeAll(async () => {
  control = await testControl();
  const app = consoleApp(control.ctx, authByHeader());
  [call, ask] = [caller(app), asker(app)];
  account = await control.addAccount("names@example.com");
  const body = { platform: "airtable", api_key: GOOD_KEY, base_id: "appOne" };
  id = (await call("POST", "/api/v1/bases", { token: account.token, body })).body.id as string;
}, 120_000);
afterAll(() => control?.[Symbol.asyncDispose]());

const TABLES = [
  sourceTable("tblT", "Tasks", { Name: "text", State: "text" }),
  sourceTable("tblP", "People", { Name: "text" }),
];

const sync = (tables = TABLES) => syncTables(control.ctx, id, tables);

const patch = (body: object) => call("PATCH", `/api/v1/bases/${id}`, { token: account.token, body });
const own = (field_id: string | null, name: string) => ({ table_id: "tblT", field_id, name });
const names = async () => {
  const { status, body } = await call("GET", `/api/v1/bases/${id}/names`, { token: account.token });
  expect(status).toBe(200);
  return body as { tables: { name: string; columns: { name: string; is_own: boolean }[] }[] };
};
const page = (form?: Record<string, string>) =>
  ask(`/bases/${id}/names?table=tblT`, { account, ...(form ? { form } : {}) });

test("names can be chosen after the first sync, are checked first, and are in SQL after the next one", async () => {
  const early = await patch({ own_names: [own(null, "jobs")] });
  expect([early.status, early.body.error.message]).toEqual([
    422,
    expect.stringMatching(/after the first sync/),
  ]);
  await sync();
  const wanted = [own(null, "jobs"), own("fld0", "title")];
  for (const [asked, message] of [
    [[own("fld0", "state")], /Column name of tasks cannot be named state/],
    [[own("fld0", "select")], /reserved word/],
    [[own(null, "_sync_meta")], /name of Basetide/],
    [[...wanted, own("fld9", "x")], /no field fld9/],
  ] as const) {
    const { status, body } = await patch({ own_names: asked });
    expect([status, body.error.message]).toEqual([422, expect.stringMatching(message)]);
  }
  const { status, body } = await patch({ own_names: wanted, pinned_names: true });
  expect([status, body.settings]).toMatchObject([200, { own_names: wanted, pinned_names: true }]);
  const [change] = await listChanges(control.ctx.db, { accountId: account.id, limit: 1 });
  expect(change!.details).toEqual({ pinned_names: true, own_names: "tblT: jobs, tblT.fld0: title" });

  const renamed = structuredClone(TABLES);
  renamed[0]!.name = "Work";
  renamed[0]!.fields[1]!.name = "Status";
  await sync(renamed);
  expect((await names()).tables).toEqual([
    {
      table_id: "tblT",
      source_name: "Work",
      name: "jobs",
      is_own: true,
      columns: [
        { field_id: "fld0", source_name: "Name", name: "title", is_own: true },
        { field_id: "fld1", source_name: "Status", name: "state", is_own: false },
      ],
    },
    {
      table_id: "tblP",
      source_name: "People",
      name: "people",
      is_own: false,
      columns: [{ field_id: "fld0", source_name: "Name", name: "name", is_own: false }],
    },
  ]);
});

test("the page shows the names and changes those of one table", async () => {
  const shown = await page();
  expect(shown.status).toBe(200);
  expect(shown.text).toMatch(/Names are pinned/);
  expect(shown.text).toMatch(/name="fld0" value="title"/);
  const refused = await page({ table_name: "jobs", fld0: "state", fld1: "" });
  expect(refused.status).toBe(422);
  expect(refused.text).toMatch(/cannot be named state/);
  expect(refused.text).toMatch(/name="fld0" value="state"/);
  expect((await page({ table_name: "", fld0: "label", fld1: "" })).status).toBe(303);
  const { settings } = await getBase(control.ctx.db, id);
  expect(settings.ownNames).toEqual([{ tableId: "tblT", fieldId: "fld0", name: "label" }]);
});

test("old names are listed until they end, with what uses them", async () => {
  const base = await getBase(control.ctx.db, id);
  await saveQuery(control.ctx, base, { name: "By old names", sql: "select name from tasks" });
  await saveQuery(control.ctx, base, {
    name: "By new names",
    sql: "select title from jobs where title <> 'name'",
  });
  const replica = openReplica(await replicaTarget(control.ctx, base));
  await replica.sql
    .unsafe("create view public.mine as select t.name as x from public.jobs as t")
    .finally(() => replica.close());
  // An extension whose library the server has not loaded is as good as none.
  await asAdmin(
    (admin) => admin.unsafe("create extension pg_stat_statements"),
    databaseUrl(control.serverUrl, base.database.name),
  );
  const { status, body } = await call("GET", `/api/v1/bases/${id}/old-names`, { token: account.token });
  expect([status, body.knows_statements]).toEqual([200, false]);
  const [table, column] = [
    { table_id: "tblT", field_id: null, name: "tasks" },
    { table_id: "tblT", field_id: "fld0", name: "name" },
  ];
  const times = { renamed_at: expect.any(String), expires_at: expect.any(String) };
  expect(body.old_names).toEqual([
    { ...table, table: "jobs", column: null, ...times },
    { ...column, table: "jobs", column: "title", ...times },
  ]);
  const [first] = body.old_names;
  expect(Date.parse(first.expires_at) - Date.parse(first.renamed_at)).toBe(7 * 86_400_000);
  expect(body.uses).toMatchObject([
    { kind: "saved query", name: "By old names", old_names: [table, column] },
    { kind: "view", name: "public.mine", old_names: [column] },
  ]);
  const shown = await page();
  expect(shown.text).toMatch(/Old names that still work/);
  expect(shown.text).toContain(`>${first.expires_at.slice(0, 16).replace("T", " ")} UTC<`);
  expect(shown.text).toMatch(/By old names/);
  expect(shown.text).not.toMatch(/By new names/);
});

test("functions and triggers that name a table's columns are listed before a rename and after it", async () => {
  const base = await getBase(control.ctx.db, id);
  const url = databaseUrl(control.serverUrl, base.database.name);
  await asAdmin(
    (admin) =>
      admin.unsafe(`
        create function public.audit() returns trigger language plpgsql as
          $$ begin if new.name = 'x' then raise 'no'; end if; return new; end $$;
        create trigger audited before update on public.people for each row execute function public.audit();
        create function public.names() returns setof text language plpgsql as
          $$ begin return query select p.name from public.people as p; end $$;
        alter table public.people replica identity full`),
    url,
  );
  const people = (form?: Record<string, string>) =>
    ask(`/bases/${id}/names?table=tblP`, { account, ...(form ? { form } : {}) });
  const before = await people();
  expect(before.text).toMatch(/Functions and triggers that name people or its columns/);
  expect(before.text).toMatch(/audited on public\.people/);
  expect(before.text).toMatch(/public\.names\(\)/);
  const renamed = structuredClone(TABLES);
  renamed[0]!.name = "Work";
  renamed[0]!.fields[1]!.name = "Status";
  await patch({ own_names: [{ table_id: "tblP", field_id: "fld0", name: "full_name" }] });
  await sync(renamed);
  const { body } = await call("GET", `/api/v1/bases/${id}/old-names`, { token: account.token });
  expect(body.lost_names).toMatchObject([
    {
      table_id: "tblP",
      name: "name",
      column: "full_name",
      reason: expect.stringMatching(/replica identity/),
    },
  ]);
  expect(body.uses).toContainEqual(
    expect.objectContaining({ kind: "trigger", name: "audited on public.people" }),
  );
  const after = await people();
  expect(after.text).toMatch(/Old name, not kept/);
  expect(after.text).toMatch(/audited on public\.people/);
});
