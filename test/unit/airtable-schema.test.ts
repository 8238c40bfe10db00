/** Schema answers: real ones, and ones with missing or additional members. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SourceTable } from "../../core/source";
import { readBases, readIdentity, readSchema } from "../../core/source/airtable/schema";
import { dataFolder, noDataReason } from "../support/data";

const field = (more: object) => ({ id: "fldA", name: "A", ...more });
const tables = (...fields: object[]) => ({
  tables: [{ id: "tblA", name: "T", primaryFieldId: "fldA", fields }],
});
const readField = (more: object) => readSchema(tables(field(more))).tables[0]!.fields[0]!;

describe("a schema", () => {
  test("keeps ids, names, descriptions and options, and drops views", () => {
    const options = { precision: 2, symbol: "€", later: [1] };
    const answer = tables(field({ type: "currency", description: "Price", options }));
    Object.assign(answer.tables[0]!, { description: "All", views: [{ id: "viwA" }], later: true });
    expect(readSchema(answer)).toEqual({
      tables: [
        {
          id: "tblA",
          name: "T",
          description: "All",
          primaryFieldId: "fldA",
          fields: [
            {
              id: "fldA",
              name: "A",
              type: "currency",
              sourceType: "currency",
              description: "Price",
              options,
            },
          ],
        },
      ],
    });
  });

  test.each([
    ["multipleLookupValues", "lookup"],
    ["lookup", "lookup"],
    ["multipleRecordLinks", "links"],
    ["manualSort", "unknown"],
    ["constructor", "unknown"],
    ["", "unknown"],
  ])("reads the type %j as %s and keeps the source's name", (word, type) => {
    expect(readField({ type: word })).toMatchObject({ type, sourceType: word });
  });

  test.each<[string, object, string | undefined]>([
    ["a declared result", { options: { result: { type: "number", options: { precision: 1 } } } }, "number"],
    ["a result of the old word", { options: { result: { type: "lookup" } } }, "lookup"],
    ["an unknown result", { options: { result: { type: "hologram" } } }, "unknown"],
    ["a null result", { options: { isValid: false, result: null } }, undefined],
    ["a result without a type", { options: { result: {} } }, undefined],
    ["no result", { options: {} }, undefined],
    ["null options", { options: null }, undefined],
    ["no options", {}, undefined],
  ])("reads %s of a computed field", (_, more, result) => {
    expect(readField({ type: "formula", ...more }).result).toBe(result);
  });

  test("without a primary field uses the first one", () => {
    const answer = { tables: [{ id: "tblA", name: "T", fields: [field({ type: "url" })] }] };
    expect(readSchema(answer).tables[0]!.primaryFieldId).toBe("fldA");
  });

  test.each([
    ["tables", {}],
    ["tables", { tables: null }],
    ["the answer", []],
  ])("that is wrong at %s is a bad answer that says so", (where, answer) => {
    expect(() => readSchema(answer)).toThrowError(
      expect.objectContaining({
        code: "source_bad_answer",
        message: expect.stringContaining(`: ${where}: `),
      }),
    );
  });
});

describe("a definition that cannot be read", () => {
  const fieldA = { id: "fldA", name: "A", type: "number", options: { precision: 0 } };
  const fieldB = { id: "fldB", name: "B", type: "singleSelect", options: { choices: [{ name: "x" }] } };
  const wire = (first: unknown = fieldA, ...more: unknown[]) => ({
    tables: [
      { id: "tblT", name: "T", primaryFieldId: "fldA", fields: [first, fieldB, ...more] },
      { id: "tblU", name: "U", primaryFieldId: "fldC", fields: [{ id: "fldC", name: "C", type: "url" }] },
    ],
  });
  const known = readSchema(wire()).tables;

  test.for([
    ["null", null],
    ["without an id", { ...fieldA, id: undefined }],
    ["with another kind of id", { ...fieldA, id: "sync_1" }],
    ["with the id of another", { ...fieldA, id: "fldB" }],
    ["without a name", { ...fieldA, name: null }],
    ["without a type", { ...fieldA, type: undefined }],
    ["with a list of options", { ...fieldA, options: [] }],
    ["with a description that is no text", { ...fieldA, description: 7 }],
  ] as [string, unknown][])("stays as it was last known, and is reported: a field %s", ([, first]) => {
    const { tables, unreadable } = readSchema(wire(first), { known });
    const byId = (table: SourceTable) => table.fields.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    expect(tables.map(byId)).toEqual(known.map(byId));
    expect(unreadable).toMatchObject([{ tableId: "tblT", reason: expect.stringMatching(/\w/) }]);
    // Nothing is known of it: it is skipped, and the rest is read.
    const fresh = readSchema(wire(first));
    expect(fresh.tables.map(({ id }) => id)).toEqual(["tblT", "tblU"]);
    expect(fresh.tables[0]!.fields.at(-1)!.id).toBe("fldB");
  });

  test.for([
    ["null", () => null],
    ["with another kind of id", (table: object) => ({ ...table, id: "7" })],
    ["without a name", (table: object) => ({ ...table, name: 7 })],
    ["without fields", (table: object) => ({ ...table, fields: null })],
    ["with no fields", (table: object) => ({ ...table, fields: [] })],
  ] as [string, (table: object) => unknown][])("is not one that is gone: a table %s", ([, change]) => {
    const [first, second] = wire().tables;
    const { tables, unreadable } = readSchema({ tables: [change(first!), second] }, { known });
    expect(tables.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(known);
    expect(unreadable).toHaveLength(1);
  });

  test("keeps nothing else: a field that is gone is gone, whatever form another one has", () => {
    const [table] = readSchema(
      { tables: [{ ...wire().tables[0], fields: [fieldA, { id: "sync_1", name: "New", type: "x" }] }] },
      { known },
    ).tables;
    expect(table!.fields.map(({ id }) => id)).toEqual(["fldA"]);
  });
});

test("a base without a name has its id as a name, and one without an id is skipped", () => {
  expect(
    readBases({ bases: [{ id: "appA" }, { name: "B" }, null, { id: "appC", name: "C" }] }).bases,
  ).toEqual([
    { id: "appA", name: "appA", permission: "none" },
    { id: "appC", name: "C", permission: "none" },
  ]);
});

test("a list of bases tolerates a missing permission and new keys", () => {
  const bases = [
    { id: "appA", name: "A", permissionLevel: "create", later: 1 },
    { id: "appB", name: "B", permissionLevel: "" },
    { id: "appC", name: "C" },
  ];
  expect(readBases({ bases, offset: "itrA/appC" })).toEqual({
    bases: [
      { id: "appA", name: "A", permission: "create" },
      { id: "appB", name: "B", permission: "none" },
      { id: "appC", name: "C", permission: "none" },
    ],
    offset: "itrA/appC",
  });
});

test("an identity has an e-mail address and scopes only where the source gives them", () => {
  expect(readIdentity({ id: "usrA" })).toEqual({ id: "usrA" });
  expect(readIdentity({ id: "usrA", email: "a@example.org", scopes: ["x"] })).toEqual({
    id: "usrA",
    email: "a@example.org",
    scopes: ["x"],
  });
});

describe.skipIf(dataFolder === undefined)(dataFolder === undefined ? noDataReason : "real data", () => {
  const read = (...path: string[]): unknown => JSON.parse(readFileSync(join(dataFolder!, ...path), "utf8"));

  test.each(["cmip7-data-request", "unlocking-the-airwaves", "unlocking-the-airwaves/earlier-2021-05-04"])(
    "the schema of %s is read completely, with every type known",
    (base) => {
      const answer = read(base, "schema.json") as { tables: { fields: object[] }[] };
      const schema = readSchema(answer);
      const fields = schema.tables.flatMap((table) => table.fields);
      expect(fields.length).toBe(answer.tables.flatMap((table) => table.fields).length);
      expect(fields.filter(({ type, result }) => type === "unknown" || result === "unknown")).toEqual([]);
    },
  );

  test("every sample of a field is read, whether its type is known or not", () => {
    const files = readdirSync(join(dataFolder!, "field-schemas")).filter((name) => name.startsWith("field-"));
    const samples = files.flatMap((name) =>
      Object.values((read("field-schemas", name) as { fields: Record<string, object> }).fields),
    );
    // Samples share their ids; the fields of a table do not.
    const distinct = samples.map((sample, index) => ({ ...sample, id: `fld${index}` }));
    const fields = readSchema(tables(...distinct)).tables[0]!.fields;
    expect(fields.length).toBeGreaterThan(30);
    expect(new Set(fields.filter(({ type }) => type === "unknown").map((one) => one.sourceType))).toEqual(
      new Set(["manualSort", "somethingUnrecognizable"]),
    );
  });
});
