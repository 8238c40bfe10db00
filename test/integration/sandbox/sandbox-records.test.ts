/** Records of the sandbox: through the real client and with raw requests. */
import Airtable from "airtable";
import { describe, expect, test } from "vitest";
import type { StoreChange } from "../../../apps/sandbox/store";
import { errorOf, PEOPLE, sandboxScene, TEAMS } from "../../support/sandbox-support";

const scene = sandboxScene();

const people = () => `/${scene.baseId}/${PEOPLE}`;

describe("the real client airtable.js", () => {
  const table = () =>
    new Airtable({ apiKey: scene.sandbox.key, endpointUrl: scene.sandbox.url })
      .base(scene.baseId)
      .table("People / staff");

  test("creates, finds, updates, replaces and destroys single records and batches", async () => {
    const made = await table().create({ Name: "Dan", Age: 30, Role: "Cook" });
    expect(made.fields).toMatchObject({ Name: "Dan", Age: 30, Role: "Cook", Number: 4 });
    expect((await table().find(made.id)).fields).toEqual(made.fields);
    const batch = await table().create([{ fields: { Name: "Eve" } }, { fields: { Name: "Fay" } }]);
    expect(batch.map((record) => record.get("Number"))).toEqual([5, 6]);
    const updated = await table().update(made.id, { Age: 31 });
    expect(updated.fields).toMatchObject({ Name: "Dan", Age: 31, Role: "Cook" });
    const [replaced] = await table().replace([{ id: made.id, fields: { Name: "Dan" } }]);
    expect(replaced!.fields).not.toHaveProperty("Age");
    expect(replaced!.fields).toMatchObject({ Name: "Dan", Number: 4 });
    await table().destroy(made.id);
    const gone = await table().destroy(batch.map((record) => record.id));
    expect(gone.map((record) => record.id)).toEqual(batch.map((record) => record.id));
    await expect(table().find(made.id)).rejects.toMatchObject({ statusCode: 404, error: "NOT_FOUND" });
  });

  test("pages through a table by GET and by POST with every parameter", async () => {
    for (const method of ["get", "post"] as const) {
      const pages: string[][] = [];
      await table()
        .select({
          pageSize: 2,
          fields: ["Name"],
          sort: [{ field: "Name", direction: "desc" }],
          filterByFormula: "{Name}!='x y'",
          view: "Grid view",
          method,
        })
        .eachPage((records, next) => {
          pages.push(records.map((record) => record.get("Name") as string));
          next();
        });
      expect(pages).toEqual([["Cat", "Bob"], ["Ann"]]);
    }
  });

  test("gets Airtable's texts for a refused value and an unknown field", async () => {
    await expect(table().create({ Nope: 1 })).rejects.toMatchObject({
      error: "UNKNOWN_FIELD_NAME",
      message: 'Unknown field name: "Nope"',
      statusCode: 422,
    });
  });
});

describe("cells", () => {
  const put = (fields: Record<string, unknown>, options: Record<string, unknown> = {}) =>
    scene.call("PATCH", `${people()}/recAnn00000000001`, { fields, ...options });

  test.for([
    ["Age", 12.5, 12.5],
    ["Age", 0, 0],
    ["Active", true, true],
    ["Active", false, undefined],
    ["Name", "", undefined],
    ["Born", "2024-02-29", "2024-02-29"],
    ["Born", "2024-02-29T23:59:00.000Z", "2024-02-29"],
    ["Seen", "2024-07-01T12:00:00", "2024-07-01T10:00:00.000Z"],
    ["Seen", "2024-07-01T12:00:00.123+05:30", "2024-07-01T06:30:00.123Z"],
    ["Seen", 0, "1970-01-01T00:00:00.000Z"],
    ["Role", "selMate0000000001", "Mate"],
    ["Skills", ["knots", "knots"], ["knots"]],
    ["Team", [{ id: "recGalley00000002" }], ["recGalley00000002"]],
    [
      "Owner",
      { email: "ADA@example.org" },
      { id: "usrSandboxAda0001", email: "ada@example.org", name: "Ada Example" },
    ],
    ["Story", "* one\n* two", "- one\n- two\n"],
    ["Stars", 5, 5],
    ["Name", "\u0000\ud800 e\u0301", "\u0000\ud800 e\u0301"],
  ])("%s accepts %j and returns %j", async ([field, written, read]) => {
    const { status, body } = await put({ [field as string]: written });
    expect([status, body.fields?.[field as string]]).toEqual([200, read]);
  });

  test.for([
    ["Age", "12", 'Field "Age" cannot accept the provided value'],
    ["Name", 12, 'Field "Name" cannot accept the provided value'],
    ["Active", "false", 'Cannot parse value "false" for field Active'],
    ["Born", "2024-02-30", 'Cannot parse value "2024-02-30" for field Born'],
    ["Stars", 0, 'Field "Stars" cannot accept the provided value'],
    ["Stars", 6, 'Field "Stars" cannot accept the provided value'],
    ["Owner", { id: "usrNobody" }, 'Field "Owner" cannot accept the provided value'],
    ["Number", 7, 'Field "Number" cannot accept a value because the field is computed'],
    ["Label", "x", 'Field "Label" cannot accept a value because the field is computed'],
  ])("%s refuses %j", async ([field, value, message]) => {
    expect(errorOf(await put({ [field as string]: value }))).toEqual([
      422,
      "INVALID_VALUE_FOR_COLUMN",
      message,
    ]);
  });

  test.for([
    ["Age", "1,234.5 kg", 1234.5],
    ["Age", "9e999", undefined],
    ["Active", "checked", true],
    ["Born", "1 March 2024", "2024-03-01"],
    ["Name", 7, "7"],
    ["Role", "Captain", "Captain"],
    ["Skills", "knots, maps", ["knots", "maps"]],
    ["Team", ["Galley"], ["recGalley00000002"]],
    ["Owner", "Ben Example", { id: "usrSandboxBen0002", email: "ben@example.org", name: "Ben Example" }],
  ])("%s with typecast stores %j as %j", async ([field, written, read]) => {
    const { status, body } = await put({ [field as string]: written }, { typecast: true });
    expect([status, body.fields?.[field as string]]).toEqual([200, read]);
  });

  test("typecast adds choices to the field and rows to a linked table, and neither if the batch fails", async () => {
    const before = scene.sandbox.control.dump(scene.baseId);
    const bad = await scene.call("POST", people(), {
      typecast: true,
      records: [{ fields: { Role: "Captain", Team: ["Bridge"] } }, { fields: { Nope: 1 } }],
    });
    expect(errorOf(bad)).toEqual([422, "UNKNOWN_FIELD_NAME", 'Unknown field name: "Nope"']);
    expect(scene.sandbox.control.dump(scene.baseId)).toEqual(before);
    await put({ Role: "Captain", Team: ["Bridge"] }, { typecast: true });
    const { tables } = scene.sandbox.control.dump(scene.baseId);
    expect(JSON.stringify(tables[0])).toContain('"name":"Captain"');
    expect(tables[1]!.records.map((record) => record.fields.fldTeamName000001)).toEqual([
      "Deck",
      "Galley",
      "Bridge",
    ]);
  });

  test("without typecast, or without permission for it, no choice is added", async () => {
    const message = 'Insufficient permissions to create new select option ""Captain""';
    expect(errorOf(await put({ Role: "Captain" }))).toEqual([
      422,
      "INVALID_MULTIPLE_CHOICE_OPTIONS",
      message,
    ]);
    const editor = scene.sandbox.control.createKey({ bases: "edit" });
    const body = { fields: { Role: "Captain" }, typecast: true };
    const refused = await scene.call("PATCH", `${people()}/recAnn00000000001`, body, editor);
    expect(errorOf(refused)[1]).toBe("INVALID_MULTIPLE_CHOICE_OPTIONS");
  });

  test("fields are named by name or id, also mixed, and returned as requested", async () => {
    const { body } = await scene.call("POST", people(), {
      fields: { Name: "Gus", fldAge00000000001: 5 },
      returnFieldsByFieldId: true,
    });
    expect(body.fields).toMatchObject({
      fldName0000000001: "Gus",
      fldAge00000000001: 5,
      fldNumber00000001: 4,
    });
  });
});

describe("batches", () => {
  test("W1: one bad record, and nothing of the batch is created, changed or numbered", async () => {
    const before = scene.sandbox.control.dump(scene.baseId);
    const records = [{ fields: { Name: "ok" } }, { fields: { Age: "no" } }];
    expect((await scene.call("POST", people(), { records })).status).toBe(422);
    const updates = [
      { id: "recAnn00000000001", fields: { Team: [], Name: "changed" } },
      { id: "recNobody00000001", fields: {} },
    ];
    const refused = await scene.call("PATCH", people(), { records: updates });
    expect(errorOf(refused)).toEqual([
      422,
      "ROW_DOES_NOT_EXIST",
      "Record ID recNobody00000001 does not exist in this table",
    ]);
    const url = `${people()}?records[]=recAnn00000000001&records[]=recNobody00000001`;
    expect(errorOf(await scene.call("DELETE", url))).toEqual([404, "MODEL_ID_NOT_FOUND", "Record not found"]);
    expect(scene.sandbox.control.dump(scene.baseId)).toEqual(before);
    const { body } = await scene.call("POST", people(), { fields: {} });
    expect(body.fields?.Number).toBe(4);
  });

  test("eleven records are too many for any call", async () => {
    const eleven = Array.from({ length: 11 }, () => ({ fields: {} }));
    expect(errorOf(await scene.call("POST", people(), { records: eleven }))).toEqual([
      422,
      "INVALID_RECORDS",
      "A maximum of 10 records can be created per request but you have provided 11.",
    ]);
    const updates = eleven.map((record) => ({ id: "recAnn00000000001", ...record }));
    expect(errorOf(await scene.call("PUT", people(), { records: updates }))[1]).toBe("INVALID_RECORDS");
    const ids = eleven.map(() => "records%5B%5D=recAnn00000000001").join("&");
    expect((await scene.call("DELETE", `${people()}?${ids}`)).status).toBe(422);
  });

  test("an upsert creates, updates, and refuses an ambiguous match or a missing merge value", async () => {
    const upsert = (records: unknown[], fieldsToMergeOn: unknown[] = ["Name"]) =>
      scene.call("PATCH", people(), { performUpsert: { fieldsToMergeOn }, records });
    const { body } = await upsert([
      { fields: { Name: "Ann", Age: 42 } },
      { fields: { Name: "Hal" } },
      { fields: { Name: null, Age: 1 } },
      { id: "recBob00000000002", fields: { Age: 2 } },
    ]);
    expect(body.updatedRecords).toEqual(["recAnn00000000001", "recBob00000000002"]);
    expect(body.createdRecords).toHaveLength(2);
    expect(body.records).toMatchObject([
      { fields: { Age: 42 } },
      {},
      {},
      { fields: { Name: "Bob", Age: 2 } },
    ]);
    await scene.call("POST", people(), { fields: { Name: "Ann" } });
    for (const refused of [
      await upsert([{ fields: { Name: "Ann" } }]),
      await upsert([{ fields: { Age: 1 } }]),
      await upsert([{ fields: { Name: "x" } }], ["Label"]),
      await upsert([{ fields: { Name: "x" } }], []),
      await upsert([{ id: "recNobody00000001", fields: { Name: "x" } }]),
    ])
      expect(refused.status).toBe(422);
  });
});

describe("links", () => {
  const members = async () =>
    (await scene.call("GET", `/${scene.baseId}/Teams/recDeck0000000001`)).body.fields;

  test("both sides are kept in agreement, and computed cells follow both", async () => {
    expect(await members()).toMatchObject({ Members: ["recAnn00000000001"], Ages: 41, Heads: 1 });
    await scene.call("PATCH", `/${scene.baseId}/Teams/recDeck0000000001`, {
      fields: { Members: ["recBob00000000002", "recCat00000000003"] },
    });
    const bob = (await scene.call("GET", `${people()}/recBob00000000002`)).body.fields;
    expect(bob).toMatchObject({ Team: ["recDeck0000000001"], "Team sizes": [3], Label: "BOB/Deck" });
    const ann = (await scene.call("GET", `${people()}/recAnn00000000001`)).body.fields;
    expect(ann).not.toHaveProperty("Team");
    expect(ann).not.toHaveProperty("Team sizes");
    expect(await members()).toMatchObject({ Ages: 0, Heads: 2 });
    await scene.call("DELETE", `${people()}/recBob00000000002`);
    expect(await members()).toMatchObject({ Members: ["recCat00000000003"], Heads: 1 });
    await scene.call("PATCH", `/${scene.baseId}/Teams/recDeck0000000001`, {
      fields: { Name: "Top", Size: 9 },
    });
    const cat = (await scene.call("GET", `${people()}/recCat00000000003`)).body.fields;
    expect(cat).toMatchObject({ "Team sizes": [9], Label: "CAT/Top" });
  });

  test("a link to a missing row and a malformed id are refused", async () => {
    const put = (ids: string[]) => scene.call("POST", people(), { fields: { Team: ids } });
    expect(errorOf(await put(["recNobody00000001"]))[1]).toBe("ROW_DOES_NOT_EXIST");
    expect(errorOf(await put(["x"]))).toEqual([
      422,
      "INVALID_RECORD_ID",
      'Value "x" is not a valid record ID.',
    ]);
  });

  test("the last modified time changes with edits of cells, not with computed cells", async () => {
    const modified = async (id: string) =>
      (await scene.call("GET", `${people()}/${id}`)).body.fields?.Modified;
    const before = await modified("recAnn00000000001");
    scene.sandbox.control.advanceClock(60_000);
    await scene.call("PATCH", `/${scene.baseId}/${TEAMS}/recDeck0000000001`, { fields: { Size: 4 } });
    expect(await modified("recAnn00000000001")).toBe(before);
    await scene.call("PATCH", `/${scene.baseId}/${TEAMS}/recDeck0000000001`, { fields: { Members: [] } });
    expect(await modified("recAnn00000000001")).not.toBe(before);
  });
});

test("a record is found by its id under any table of its base, but not under another base", async () => {
  expect((await scene.call("GET", `/${scene.baseId}/Teams/recAnn00000000001`)).body.id).toBe(
    "recAnn00000000001",
  );
  const other = scene.sandbox.control.generate({ records: 1 });
  expect(errorOf(await scene.call("GET", `/${other}/Projects/recAnn00000000001`))).toEqual([
    404,
    "MODEL_ID_NOT_FOUND",
    "Record not found",
  ]);
});

test("S2: every change is reported once, with its effect on both sides of a link", async () => {
  const heard: StoreChange[] = [];
  const stop = scene.sandbox.control.onChange((change) => heard.push(change));
  await scene.call("PATCH", `${people()}/recAnn00000000001`, { fields: { Age: 42, Team: [] } });
  await scene.call("PATCH", `${people()}/recAnn00000000001`, { fields: { Age: "refused" } });
  scene.sandbox.control.deleteRecords(scene.baseId, PEOPLE, ["recBob00000000002"]);
  stop();
  expect(
    heard.map(({ source, transactionNumber, events }) => ({ source, transactionNumber, events })),
  ).toEqual([
    {
      source: "publicApi",
      transactionNumber: 1,
      events: [
        {
          kind: "record_updated",
          tableId: PEOPLE,
          recordId: "recAnn00000000001",
          current: { fldAge00000000001: 42, fldTeam0000000001: null },
          previous: { fldAge00000000001: 41, fldTeam0000000001: ["recDeck0000000001"] },
        },
        {
          kind: "record_updated",
          tableId: TEAMS,
          recordId: "recDeck0000000001",
          current: { fldMembers0000001: null },
          previous: { fldMembers0000001: ["recAnn00000000001"] },
        },
      ],
    },
    {
      source: "client",
      transactionNumber: 2,
      events: [{ kind: "record_deleted", tableId: PEOPLE, recordId: "recBob00000000002" }],
    },
  ]);
});

test("comments are created, listed newest first, changed by their author, counted and deleted", async () => {
  const path = `${people()}/recAnn00000000001/comments`;
  const first = (await scene.call("POST", path, { text: "one" })).body;
  const second = (await scene.call("POST", path, { text: "two", parentCommentId: first.id })).body;
  const page = (await scene.call("GET", `${path}?pageSize=1`)).body;
  expect(page).toEqual({ comments: [second], offset: first.id });
  expect((await scene.call("GET", `${path}?pageSize=1&offset=${page.offset}`)).body).toEqual({
    comments: [first],
    offset: null,
  });
  const stranger = scene.sandbox.control.createKey({ user: { id: "usrStranger" } });
  expect((await scene.call("PATCH", `${path}/${first.id}`, { text: "x" }, stranger)).status).toBe(403);
  expect((await scene.call("PATCH", `${path}/${first.id}`, { text: "uno" })).body.text).toBe("uno");
  const listed = await scene.call("GET", `${people()}?recordMetadata[]=commentCount&pageSize=1`);
  expect(listed.body.records?.[0]?.commentCount).toBe(2);
  expect((await scene.call("DELETE", `${path}/${first.id}`)).body).toEqual({
    id: first.id,
    deleted: true,
  });
});

test("a CSV sync makes the table's rows equal to the file, matched by the first column", async () => {
  const csv = 'Name,Age,Role\r\nAnn,50,Cook\r\n"Zoë ""Z"", 2nd",7,\r\n';
  const answer = await fetch(`${scene.sandbox.url}/v0${people()}/sync/abc`, {
    method: "POST",
    headers: { authorization: `Bearer ${scene.sandbox.key}`, "content-type": "text/csv" },
    body: csv,
  });
  expect(await answer.json()).toEqual({ success: true });
  const rows = scene.sandbox.control
    .dump(scene.baseId)
    .tables[0]!.records.map(({ id, fields }) => [
      id === "recAnn00000000001",
      fields.fldName0000000001,
      fields.fldAge00000000001,
    ]);
  expect(rows).toEqual([
    [true, "Ann", 50],
    [false, 'Zoë "Z", 2nd', 7],
  ]);
});
