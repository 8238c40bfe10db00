/** What a base copies: nothing that is left out passes the connection, and the rest passes unchanged. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkSelection,
  copiesEverything,
  createCellHash,
  type FieldTreatment,
  type SourceConnection,
  type SourceField,
  type SourceRecord,
  type SourceSchema,
  type SourceSelection,
  type SourceTable,
  selectedSource,
  type TableSelection,
} from "../../core/source";
import { dependentsOf, hasHiddenDependencies } from "../../core/source/airtable/dependents";
import { FakeSource } from "../support/fake-source";

const { signal } = new AbortController();
const KEY = "key of the base";
const hash = createCellHash(KEY);
const SECRET = "s3cret";

const TABLES = ["tblA", "tblB", "tblC"];
const fieldIds = (tableId: string) => [0, 1, 2, 3].map((index) => `fld${tableId.slice(3)}${index}`);

/** Three tables of texts; every cell contains the secret and says where it is. */
function scene(): FakeSource {
  const source = new FakeSource();
  for (const id of TABLES) {
    const fields = fieldIds(id).map(
      (fieldId): SourceField => ({
        id: fieldId,
        name: `Name of ${fieldId}`,
        type: "text",
        sourceType: "singleLineText",
      }),
    );
    const records = [0, 1, 2].map((index): SourceRecord => {
      const cells = fields.map((field) => [field.id, `${SECRET} ${field.id} ${index}`]);
      return {
        id: `rec${id}${index}`,
        createdTime: "2024-01-01T00:00:00.000Z",
        fields: Object.fromEntries(cells),
      };
    });
    source.add({ id, name: `Table ${id}`, primaryFieldId: fields[0]!.id, fields }, records);
  }
  return source;
}

const treatments = fc.constantFrom<FieldTreatment | undefined>("omitted", "hashed", undefined);
const tableSelection = (id: string) =>
  fc
    .record({ copied: fc.boolean(), treatments: fc.tuple(treatments, treatments, treatments, treatments) })
    .map(
      ({ copied, treatments: drawn }): TableSelection => ({
        copied,
        fields: Object.fromEntries(
          fieldIds(id).flatMap((fieldId, index) => (drawn[index] ? [[fieldId, drawn[index]]] : [])),
        ),
      }),
    );
const selections: fc.Arbitrary<SourceSelection> = fc.record({
  newTables: fc.constantFrom("copy", "ask", "ignore"),
  tables: fc
    .tuple(...TABLES.map((id) => fc.option(tableSelection(id), { nil: undefined })))
    .map((all) => Object.fromEntries(all.flatMap((one, index) => (one ? [[TABLES[index]!, one]] : [])))),
});

const treatmentIn = ({ newTables, tables }: SourceSelection, tableId: string, fieldId: string) => {
  const isCopied = tables[tableId]?.copied ?? newTables === "copy";
  return isCopied ? (tables[tableId]?.fields?.[fieldId] ?? "copied") : "left out";
};

/** All that a sync reads, in every way that there is to read it. */
async function everything(connection: SourceConnection, tables: SourceTable[]) {
  const records: SourceRecord[] = [];
  for (const table of tables) {
    const named = { id: table.id, name: table.id, primaryFieldId: "", fields: [] };
    const ids = [0, 1, 2].map((index) => `rec${table.id}${index}`);
    const pages = [
      await connection.listPage("app1", table, {}, signal),
      await connection.listByIds("app1", table, ids, {}, signal),
      await connection.listByIds("app1", named, ids, {}, signal),
    ];
    for (const page of pages)
      for (let index = 0; index < page.size; index++) records.push(page.record(index));
    for (const id of ids) {
      const record = await connection.getRecord("app1", table.id, id, signal);
      if (record) records.push(record);
    }
  }
  return records;
}

test("every cell is as the selection says, whichever call returns it, and nothing else of the schema is shown", async () => {
  await fc.assert(
    fc.asyncProperty(selections, async (selection) => {
      const source = scene();
      const connection = selectedSource(source.connection(), { selection, hash });
      const { tables } = await connection.getSchema("app1", signal);
      for (const table of tables)
        for (const field of table.fields)
          expect(treatmentIn(selection, table.id, field.id)).toBe(
            field.type === "hashed" ? "hashed" : "copied",
          );
      const all = source.tables.map(({ table }) => table);
      const seen = new Set<string>();
      // Tables as the schema has them, and as the caller may still remember them.
      for (const record of await everything(connection, [...tables, ...all])) {
        const tableId = record.id.slice(3, 7);
        for (const fieldId of fieldIds(tableId)) {
          const plain = `${SECRET} ${fieldId} ${record.id.at(-1)}`;
          const treatment = treatmentIn(selection, tableId, fieldId);
          seen.add(tableId);
          const expected = { copied: plain, hashed: hash(plain), omitted: undefined, "left out": undefined };
          expect(record.fields[fieldId]).toBe(expected[treatment]);
        }
      }
      expect([...seen].sort()).toEqual(tables.map(({ id }) => id).sort());
    }),
    { numRuns: 60 },
  );
});

test("a table that is not copied costs no request, and lists request the copied fields only", async () => {
  const source = scene();
  const selection: SourceSelection = {
    newTables: "ignore",
    tables: { tblA: { copied: true, viewId: "viwA", fields: { fldA1: "omitted", fldA2: "hashed" } } },
  };
  const asked: unknown[] = [];
  const plain = source.connection();
  const watched: SourceConnection = {
    ...plain,
    getSchema: async (...call) => {
      const { tables } = await plain.getSchema(...call);
      return { tables: tables.map((table) => ({ ...table, views: [{ id: "viwA", name: "A" }] })) };
    },
    listPage: (base, table, options, at) => {
      asked.push([table.id, options]);
      return plain.listPage(base, table, options, at);
    },
  };
  source.views.set("viwA", ({ id }) => id === "rectblA1");
  const connection = selectedSource(watched, { selection, hash });
  const { tables } = await connection.getSchema("app1", signal);
  expect(tables.map(({ id, partial, viewId }) => ({ id, partial, viewId }))).toEqual([
    { id: "tblA", partial: "records", viewId: "viwA" },
  ]);
  const all = source.tables.map(({ table }) => table);
  source.calls.length = 0;
  for (const table of all.slice(1)) {
    expect((await connection.listPage("app1", table, {}, signal)).size).toBe(0);
    expect(await connection.getRecord("app1", table.id, `rec${table.id}0`, signal)).toBeNull();
  }
  expect(source.calls).toEqual([]);
  const page = await connection.listPage("app1", tables[0]!, {}, signal);
  expect(asked).toEqual([["tblA", { view: "viwA", fields: ["fldA0", "fldA2", "fldA3"] }]]);
  expect([page.size, page.id(0)]).toEqual([1, "rectblA1"]);
  // Only a list tells whether the view shows a record.
  expect(await connection.getRecord("app1", "tblA", "rectblA0", signal)).toBeNull();
  expect((await connection.getRecord("app1", "tblA", "rectblA1", signal))?.id).toBe("rectblA1");
});

test("a record of a view that cannot be read exists: its row must not be taken for deleted", async () => {
  const source = scene();
  const selection: SourceSelection = {
    newTables: "copy",
    tables: { tblA: { copied: true, viewId: "viwA" } },
  };
  const plain = source.connection();
  const flawed: SourceConnection = {
    ...plain,
    listByIds: async (...call) => ({
      ...(await plain.listByIds(...call)),
      size: 0,
      unreadable: [{ id: "rectblA1", reason: "fields: expected an object, not missing" }],
    }),
  };
  const connection = selectedSource(flawed, { selection, hash });
  await expect(connection.getRecord("app1", "tblA", "rectblA1", signal)).rejects.toMatchObject({
    code: "source_bad_answer",
    details: { isRecord: true },
  });
});

test("a table whose view is gone is not read: its rows must not be taken for deleted", async () => {
  const source = scene();
  const selection: SourceSelection = {
    newTables: "copy",
    tables: { tblA: { copied: true, viewId: "viwGone" } },
  };
  const plain = source.connection();
  const withViews: SourceConnection = {
    ...plain,
    getSchema: async (...call) => {
      const { tables } = await plain.getSchema(...call);
      return { tables: tables.map((table) => ({ ...table, views: [] })) };
    },
  };
  const connection = selectedSource(withViews, { selection, hash });
  const { tables } = await connection.getSchema("app1", signal);
  source.calls.length = 0;
  const reading = connection.listPage("app1", tables[0]!, {}, signal);
  await expect(reading).rejects.toMatchObject({
    code: "view_gone",
    message: expect.stringContaining("Table tblA"),
  });
  expect(source.calls).toEqual([]);
});

describe("a hash", () => {
  const json = fc.jsonValue({ maxDepth: 4 }).filter((value) => value !== null);

  test("is the same for the same cell in any order of keys, and another one with another key", () => {
    fc.assert(
      fc.property(json, (cell) => {
        const again = JSON.parse(JSON.stringify(reordered(cell)));
        expect(hash(again)).toBe(hash(cell));
        expect(hash(cell)).toMatch(/^[0-9a-f]{64}$/);
        expect(createCellHash("another key")(cell)).not.toBe(hash(cell));
      }),
    );
  });

  test("joins people with their e-mail addresses, and does not depend on what else is known of them", () => {
    const ann = { id: "usr1", email: "ann@example.com", name: "Ann" };
    expect(hash(ann)).toBe(hash("ann@example.com"));
    expect(hash([ann])).toBe(hash([{ ...ann, name: "Ann B.", profilePicUrl: "https://x" }]));
  });

  test("of a cell that nests without end is made without exhausting the stack", () => {
    let cell: unknown = [];
    for (let depth = 0; depth < 50_000; depth++) cell = [cell];
    expect(hash(cell)).toMatch(/^[0-9a-f]{64}$/);
  });
});

function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, part]) => [key, reordered(part)]),
  );
}

describe("a selection is rejected with the reason and the remedy", () => {
  const schema: SourceSchema = {
    tables: [
      {
        id: "tblA",
        name: "People",
        primaryFieldId: "fldName",
        fields: [
          { id: "fldName", name: "Name", type: "text", sourceType: "singleLineText" },
          { id: "fldFiles", name: "Files", type: "attachment", sourceType: "multipleAttachments" },
          { id: "fldMail", name: "Mail", type: "email", sourceType: "email" },
        ],
        views: [{ id: "viwA", name: "All" }],
      },
    ],
  };
  const of = (
    tables: SourceSelection["tables"],
    newTables: SourceSelection["newTables"] = "copy",
  ): SourceSelection => ({
    newTables,
    tables,
  });

  test.each<[string, SourceSelection, RegExp]>([
    ["an unknown table", of({ tblZ: { copied: true } }), /no table tblZ.*Leave it out/],
    [
      "an unknown field",
      of({ tblA: { copied: true, fields: { fldZ: "omitted" } } }),
      /no field fldZ in the table "People"/,
    ],
    ["a view that is gone", of({ tblA: { copied: true, viewId: "viwZ" } }), /no view viwZ.*or all records/],
    [
      "an omitted primary field",
      of({ tblA: { copied: true, fields: { fldName: "omitted" } } }),
      /"Name".*primary.*hash it/,
    ],
    [
      "hashed attachments",
      of({ tblA: { copied: true, fields: { fldFiles: "hashed" } } }),
      /"Files".*multipleAttachments.*omit it/,
    ],
    ["no table at all", of({ tblA: { copied: false } }), /No table would be copied/],
    ["no table, as none is named", of({}, "ignore"), /No table would be copied/],
  ])("%s", (_, asked, message) => {
    expect(() => checkSelection(asked, schema, null)).toThrow(message);
  });

  test("what has been deleted in Airtable since the last choice is left out silently", () => {
    const before = of({
      tblA: { copied: true, fields: { fldOld: "omitted", fldMail: "hashed" } },
      tblOld: { copied: true },
    });
    expect(checkSelection(before, schema, before)).toEqual(
      of({ tblA: { copied: true, fields: { fldMail: "hashed" } } }),
    );
  });

  test("one that leaves nothing out is none", () => {
    expect(copiesEverything(checkSelection(of({ tblA: { copied: true, fields: {} } }), schema, null))).toBe(
      true,
    );
    expect(copiesEverything(of({ tblA: { copied: true } }, "ask"))).toBe(false);
  });
});

describe("dependencies over what is not copied", () => {
  const field = (
    id: string,
    type: SourceField["type"],
    options: Record<string, unknown> = {},
  ): SourceField => ({
    id,
    name: id,
    type,
    sourceType: type,
    options,
  });
  /** People look up the names of their teams. */
  const schema: SourceSchema = {
    tables: [
      {
        id: "tblT",
        name: "Teams",
        primaryFieldId: "fldTName",
        fields: [
          field("fldTName", "text"),
          field("fldTPeople", "links", { linkedTableId: "tblP", inverseLinkFieldId: "fldPTeam" }),
        ],
      },
      {
        id: "tblP",
        name: "People",
        primaryFieldId: "fldPName",
        fields: [
          field("fldPName", "text"),
          field("fldPTeam", "links", { linkedTableId: "tblT", inverseLinkFieldId: "fldTPeople" }),
          field("fldPTeamName", "lookup", {
            recordLinkFieldId: "fldPTeam",
            fieldIdInLinkedTable: "fldTName",
          }),
        ],
      },
    ],
  };

  test.each<[string, string[], boolean]>([
    ["both links are left out", ["fldTPeople", "fldPTeam"], true],
    ["one of the two links is left out", ["fldTPeople"], false],
    ["the other one is", ["fldPTeam"], false],
    ["nothing that is computed is copied", ["fldTPeople", "fldPTeam", "fldPTeamName"], false],
  ])("where %s", (_, hidden, expected) => {
    expect(hasHiddenDependencies(schema, (id) => !hidden.includes(id))).toBe(expected);
  });

  test("a change in a table that is not copied still leads to the records that show it", async () => {
    const source = new FakeSource();
    for (const table of schema.tables) source.add(table, []);
    const selection: SourceSelection = { newTables: "ignore", tables: { tblP: { copied: true } } };
    const connection = selectedSource(source.connection(), { selection, hash });
    const copied = await connection.getSchema("app1", signal);
    const dependents = connection.changeFeed!.dependents(copied);
    const changed = [{ tableId: "tblT", fieldId: "fldTName", recordIds: ["recT1"] }];
    const linking = async () => new Set(["recP1"]);
    expect(await dependents.records(changed, linking)).toEqual(new Map([["tblP", new Set(["recP1"])]]));
    // The inverse of a link is a cell of a table that is not copied.
    const relinked = [{ tableId: "tblP", fieldId: "fldPTeam", recordIds: ["recP1"] }];
    expect([...(await dependents.records(relinked, linking)).keys()]).not.toContain("tblT");
    expect(await dependentsOf(schema).records(relinked, linking)).toHaveProperty("size", 1);
  });
});
