/** Writes and reads through the proxy to a base of which only a part is copied. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { accountByEmail } from "../../../core/control/accounts";
import { getBase, readSelectable, setSelection } from "../../../core/control/bases";
import { createCellHash, type SourceSelection } from "../../../core/source";
import { asker, authByHeader } from "../../support/console";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";
import { wholeText } from "../../support/select";

let stack: ProxyStack;
let base: Replicated;
let baseId: string;
/** Of the tables, fields and records, by name. */
const ids: Record<string, string> = {};

const SECRET = "s3cret";
const text = (name: string) => ({ name, type: "singleLineText" });

beforeAll(async () => {
  stack = await proxyStack();
  const { control } = stack.sandbox;
  baseId = control.createBase({
    name: "Clients",
    tables: [
      {
        name: "Contacts",
        fields: [text("Name"), text("Mail"), text("Notes")],
        records: [{ fields: { Name: "Ada", Mail: `${SECRET}@a`, Notes: `${SECRET} note` } }],
      },
      { name: "Salaries", fields: [text("Name")], records: [{ fields: { Name: `${SECRET} salary` } }] },
      {
        name: "Leads",
        fields: [text("Name"), text("State")],
        views: [
          { id: "viw00000000000001", name: "All", type: "grid" },
          { id: "viw00000000000002", name: "Open", type: "grid", filter: "{State} = 'open'" },
        ],
        records: [
          { fields: { Name: "First", State: "open" } },
          { fields: { Name: `Second ${SECRET}`, State: "lost" } },
        ],
      },
    ],
  });
  for (const { id, name, fields, records } of control.dump(baseId).tables) {
    ids[name] = id;
    for (const field of fields as { id: string; name: string }[]) ids[`${name}.${field.name}`] = field.id;
    records.forEach((record, index) => {
      ids[`${name} ${index}`] = record.id;
    });
  }
  base = await stack.connect(baseId);
  const selection: SourceSelection = {
    newTables: "ignore",
    tables: {
      [ids.Contacts!]: {
        copied: true,
        fields: { [ids["Contacts.Mail"]!]: "hashed", [ids["Contacts.Notes"]!]: "omitted" },
      },
      [ids.Leads!]: { copied: true, viewId: "viw00000000000002" },
    },
  };
  const { managed } = stack;
  await setSelection(managed, base.base, selection, await readSelectable(managed, base.base));
  await base.sync();
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${stack.endpoint}/v0/${baseId}/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${stack.sandbox.key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    sql: response.headers.get("x-basetide-sql"),
    by: response.headers.get("x-basetide-answered-by"),
    json: (await response.json()) as {
      id: string;
      fields: Record<string, unknown>;
      records: { fields: object }[];
    },
  };
}
const SHOWN = { status: 200, sql: null };

test("a write that names omitted and hashed fields passes to Airtable, and SQL shows the rest of it", async () => {
  const fields = { Name: "Ada L.", Mail: `new ${SECRET}`, Notes: `other ${SECRET}` };
  const answer = await call("PATCH", `Contacts/${ids["Contacts 0"]}`, { fields });
  expect(answer).toMatchObject({ ...SHOWN, json: { fields } });
  const byId = await call("POST", `${ids.Contacts}?returnFieldsByFieldId=true`, {
    fields: { [ids["Contacts.Name"]!]: "Bob", [ids["Contacts.Mail"]!]: `new ${SECRET}` },
    returnFieldsByFieldId: true,
  });
  expect(byId).toMatchObject(SHOWN);
  const rows = await base.rows("contacts");
  expect(rows.map(({ name }) => name).sort()).toEqual(["Ada L.", "Bob"]);
  // The same value has the same hash, whichever client wrote it.
  expect(new Set(rows.map(({ mail }) => mail))).toEqual(new Set([expect.stringMatching(/^[0-9a-f]{64}$/)]));
  expect(new Set(rows.map(({ mail }) => mail)).size).toBe(1);
  expect(Object.keys(rows[0]!)).not.toContain("notes");
});

test("a proxy that knows an earlier selection than the table has does not empty hashed cells, and what it records is forgotten", async () => {
  const { db } = stack.managed;
  const [known] = await db<{ selection: never }[]>`select selection from bases where id = ${base.base.id}`;
  const [before] = await base.rows("contacts");
  await db`update bases set selection = null where id = ${base.base.id}`;
  const fields = { Name: "Ada L.", Mail: `late ${SECRET}` };
  const isLeft = async () => (await call("PATCH", `Contacts/${before!.id}`, { fields })).sql === "pending";
  await until(isLeft, { what: "the proxy knows the other selection", timeoutMs: 20_000 });
  const shown = (await base.rows("contacts")).find(({ id }) => id === before!.id);
  expect(shown!.mail).toMatch(/^[0-9a-f]{64}$/);
  const image = { fields: { [ids["Contacts.Notes"]!]: SECRET, [ids["Contacts.Mail"]!]: SECRET } };
  await stack.withOwner(base, async (sql) => {
    // As a proxy records it whose table was replaced meanwhile.
    await sql`
      insert into public_swap._recent_writes (table_id, record_id, applied_version, gone, image, read_version, written)
      values (${ids.Contacts!}, 'recLate', nextval('public_swap._versions'), false, ${sql.json(image)}, 1, true)`;
    expect(await wholeText(sql)).not.toContain(`late ${SECRET}`);
    await db`update bases set selection = ${db.json(known!.selection)} where id = ${base.base.id}`;
    await base.sync(new Map());
    const isKnown = async () => (await call("PATCH", `Contacts/${before!.id}`, { fields })).sql === null;
    await until(isKnown, { what: "the proxy knows the selection again", timeoutMs: 20_000 });
    const wasForgotten = async () => !(await wholeText(sql)).includes(SECRET);
    await until(wasForgotten, { what: "what was recorded is forgotten" });
  });
  const late = (await base.rows("contacts")).find(({ id }) => id === before!.id);
  expect(late!.mail).toMatch(/^[0-9a-f]{64}$/);
});

test("a write to a table that is not copied is Airtable's alone, by name and by id", async () => {
  for (const table of ["Salaries", ids.Salaries])
    expect(await call("POST", `${table}`, { fields: { Name: `more ${SECRET}` } })).toMatchObject(SHOWN);
  expect(await call("DELETE", `Salaries/${ids["Salaries 0"]}`)).toMatchObject(SHOWN);
  await expect(base.rows("salaries")).rejects.toThrow(/does not exist/);
});

test("after a write SQL has a record exactly if the view shows it", async () => {
  const names = async () => (await base.rows("leads")).map(({ name }) => name).sort();
  expect(await names()).toEqual(["First"]);
  const lost = await call("POST", "Leads", { fields: { Name: `Third ${SECRET}`, State: "lost" } });
  expect(lost).toMatchObject(SHOWN);
  expect(await call("POST", "Leads", { fields: { Name: "Fourth", State: "open" } })).toMatchObject(SHOWN);
  expect(await names()).toEqual(["First", "Fourth"]);
  expect(await call("PATCH", `Leads/${ids["Leads 0"]}`, { fields: { State: "won" } })).toMatchObject(SHOWN);
  expect(await names()).toEqual(["Fourth"]);
});

test("the replica answers only reads whose cells it has as they are", async () => {
  const read = async (path: string) => {
    const { status, by, json } = await call("GET", path, undefined, { "x-basetide-read": "replica" });
    expect(status).toBe(200);
    return { by, text: JSON.stringify(json) };
  };
  // The first one proves the key.
  await read("Contacts?fields[]=Name");
  const name = await read("Contacts?fields[]=Name");
  expect(name.by).toBe("replica");
  for (const path of [
    "Contacts",
    "Contacts?fields[]=Name&fields[]=Mail",
    "Contacts?fields[]=Notes",
    `Contacts?fields[]=Name&filterByFormula=${encodeURIComponent(`{Mail} = 'new ${SECRET}'`)}`,
    `Contacts/${ids["Contacts 0"]}`,
    "Salaries",
    "Leads?fields[]=Name",
  ]) {
    const { by, text } = await read(path);
    expect([path, by]).toEqual([path, "source"]);
    expect(text).not.toMatch(/[0-9a-f]{64}/);
  }
});

test("no byte that the service stores or shows has what is left out", async () => {
  await base.sync();
  await stack.withOwner(base, async (sql) => {
    const stored = await wholeText(sql);
    expect(stored).toContain("Ada L.");
    expect(stored).not.toContain(SECRET);
  });
  const control = await wholeText(stack.ctx.db);
  expect(control).toContain(baseId);
  expect(control).not.toContain(SECRET);
  const account = await accountByEmail(stack.ctx.db, "a1@example.com");
  const ask = asker(consoleApp(stack.managed, authByHeader()));
  for (const page of [
    "",
    "/data/contacts",
    "/schema",
    "/runs",
    "/issues",
    "/settings",
    "/selection",
    "/schema.sql",
  ]) {
    const { status, text: shown } = await ask(`/bases/${base.base.id}${page}`, { account });
    expect([page, status]).toEqual([page, 200]);
    expect(shown).not.toContain(SECRET);
  }
});

test("another selection applies to the next write, even before a sync has applied it", async () => {
  const { managed } = stack;
  const now = await getBase(managed.db, base.base.id);
  const key = ids["Leads.Name"]!;
  const tables = {
    ...now.selection!.tables,
    [ids.Leads!]: { copied: true, fields: { [key]: "hashed" as const } },
  };
  await setSelection(managed, now, { newTables: "ignore", tables }, await readSelectable(managed, now));
  expect(await call("POST", "Leads", { fields: { Name: `Fifth ${SECRET}`, State: "lost" } })).toMatchObject(
    SHOWN,
  );
  await stack.withOwner(base, async (sql) => expect(await wholeText(sql)).not.toContain(SECRET));
  await base.sync();
  const names = (await base.rows("leads")).map(({ name }) => name);
  expect(names).toHaveLength(5);
  for (const name of names) expect(name).toMatch(/^[0-9a-f]{64}$/);
  expect(names).not.toContain(createCellHash("")(`Fifth ${SECRET}`));
});
