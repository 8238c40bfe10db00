/** Webhook payloads as changes: the samples of a client library, and histories with known results. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isAsTold, readBatch } from "../../core/source/airtable/payloads";
import { readWebhooks } from "../../core/source/airtable/webhooks";
import { dataFolder, noDataReason } from "../support/data";

const T = "tblA";
const batch = (...payloads: unknown[]) =>
  readBatch({ payloads, cursor: payloads.length + 1, mightHaveMore: false }, 1);
const inTable = (part: object) => ({ timestamp: "x", changedTablesById: { [T]: part } });
const created = (id: string) => inTable({ createdRecordsById: { [id]: { createdTime: "x" } } });
const changed = (id: string, ...fields: string[]) =>
  inTable({
    changedRecordsById: {
      [id]: { current: { cellValuesByFieldId: Object.fromEntries(fields.map((field) => [field, 1])) } },
    },
  });
const destroyed = (id: string) => inTable({ destroyedRecordIds: [id] });

const nothing = {
  created: [],
  changed: new Map(),
  told: new Map(),
  destroyed: [],
  fieldsChanged: false,
  typesTold: new Map(),
  isUnreadable: false,
};

describe("payloads", () => {
  test("say which records, fields and tables changed, and which cells", () => {
    const { changes } = batch(
      changed("recA", "fld1"),
      changed("recA", "fld2", "fld1"),
      created("recB"),
      changed("recB", "fld1"),
      destroyed("recC"),
      inTable({ destroyedFieldIds: ["fld9"], later: true }),
      { createdTablesById: { tblN: { fieldsById: { fldN: {} }, recordsById: { recN: {} } } } },
      { changedTablesById: { tblM: { changedMetadata: { current: {}, previous: {} } } } },
      { destroyedTableIds: ["tblD"] },
    );
    expect(changes).toEqual({
      tables: new Map([
        [
          T,
          {
            created: ["recB"],
            changed: new Map([["recA", ["fld1", "fld2"]]]),
            told: new Map(),
            destroyed: ["recC"],
            fieldsChanged: true,
            typesTold: new Map(),
            isUnreadable: false,
          },
        ],
        ["tblN", { ...nothing, created: ["recN"], fieldsChanged: true }],
        ["tblM", nothing],
      ]),
      tablesCreated: ["tblN"],
      tablesDestroyed: ["tblD"],
      tablesChanged: ["tblM"],
    });
  });

  test("F1: after any history, a record has its last reported state, however payloads are split or repeated", () => {
    const step = fc.record({
      id: fc.constantFrom("recA", "recB", "recC"),
      what: fc.constantFrom("created", "changed", "destroyed"),
    });
    const make = { created, changed: (id: string) => changed(id, "fld1"), destroyed };
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.boolean(), (steps, isRepeated) => {
        const payloads = steps.map(({ id, what }) => make[what as "created"](id));
        const { changes } = batch(...payloads, ...(isRepeated ? payloads : []));
        const table = changes.tables.get(T);
        for (const id of ["recA", "recB", "recC"]) {
          const last = steps.findLast((one) => one.id === id);
          const where = [
            table?.created.includes(id) || table?.changed.has(id) ? "there" : "",
            table?.destroyed.includes(id) ? "gone" : "",
          ].join("");
          expect(where).toBe(last === undefined ? "" : last.what === "destroyed" ? "gone" : "there");
        }
      }),
    );
  });

  test("a deleted table takes its records along", () => {
    const { changes } = batch(created("recA"), { destroyedTableIds: [T] });
    expect([changes.tables.size, changes.tablesDestroyed]).toEqual([0, [T]]);
  });

  test("a table that changes after its deletion exists again", () => {
    const { changes } = batch(created("recA"), { destroyedTableIds: [T] }, changed("recB", "fld1"));
    expect(changes).toMatchObject({ tablesDestroyed: [], tablesCreated: [T] });
    expect(changes.tables.get(T)).toMatchObject({ created: [], changed: new Map([["recB", ["fld1"]]]) });
  });

  test("report an error by its code, with the rest of the content", () => {
    const { error, changes } = batch(
      changed("recA", "f"),
      { error: true, code: "INVALID_FILTERS" },
      { error: true },
    );
    expect([error, changes.tables.size]).toEqual(["INVALID_FILTERS", 1]);
    expect(batch({ error: true }).error).toBe("UNKNOWN_ERROR");
  });

  test("F2: an invalid one is an error, and the others are read", () => {
    const { error, changes } = batch({ destroyedTableIds: "tblA" }, 7, changed("recA", "f"));
    expect([error, [...changes.tables.keys()]]).toEqual(["UNREADABLE_PAYLOAD", [T]]);
  });

  test("a gap before the first payload is detected from the numbers", () => {
    const page = (asked: number, cursor: number, count: number) =>
      readBatch({ payloads: Array(count).fill({}), cursor, mightHaveMore: true }, asked);
    expect(page(5, 7, 2)).toMatchObject({ hasGap: false, mightHaveMore: true, payloads: 2 });
    expect(page(5, 5, 0)).toMatchObject({ hasGap: false, mightHaveMore: false });
    expect(page(5, 9, 2)).toMatchObject({ hasGap: true });
    expect(page(5, 9, 0)).toMatchObject({ hasGap: true });
  });

  test("report each new type of a field, whatever else changed", () => {
    const change = (id: string, current: unknown) => inTable({ changedFieldsById: { [id]: { current } } });
    const { changes, error } = batch(
      change("fld1", { name: "A", type: "number" }),
      change("fld1", { type: "singleLineText" }),
      change("fld2", { name: "B" }),
      inTable({ changedFieldsById: { fld3: null, fld4: { current: { type: 7 } }, fld5: "?" } }),
    );
    expect(error).toBeUndefined();
    expect(changes.tables.get(T)).toEqual({
      ...nothing,
      fieldsChanged: true,
      typesTold: new Map([["fld1", ["number", "singleLineText"]]]),
    });
  });

  test.for([
    [{ changedRecordsById: null }, []],
    [{ changedRecordsById: { rec1: {}, "row 2": {} } }, ["rec1"]],
    [{ createdRecordsById: [] }, []],
    [{ destroyedRecordIds: [null] }, []],
    [{ changedFieldsById: "?" }, []],
    [null, []],
    ["?", []],
  ] as [unknown, string[]][])(
    "F2: what cannot be read of a table's changes is said of the table: %j",
    ([part, changedIds]) => {
      const { error, changes } = batch({ changedTablesById: { [T]: part, tblB: {} } });
      expect(error).toBeUndefined();
      expect(changes.tables.get(T)).toMatchObject({ isUnreadable: true });
      expect([...changes.tables.get(T)!.changed.keys()]).toEqual(changedIds);
      expect(changes.tables.get("tblB")).toMatchObject({ isUnreadable: false });
    },
  );

  test("F2: if the cells of a changed record cannot be read, any of them may have changed", () => {
    const odd = inTable({ changedRecordsById: { recA: { current: 7 } } });
    for (const payloads of [
      [odd, changed("recA", "fld1")],
      [changed("recA", "fld1"), odd],
    ])
      expect(batch(...payloads).changes.tables.get(T)!.changed).toEqual(new Map([["recA", []]]));
  });

  test("tell the cells of records that they name once", () => {
    const { changes } = batch(
      changed("recA", "fld1"),
      changed("recB", "fld1"),
      changed("recB", "fld2"),
      destroyed("recC"),
      changed("recC", "fld1"),
    );
    expect(changes.tables.get(T)!.told).toEqual(new Map([["recA", { fld1: 1 }]]));
  });

  test.for([
    ["text", "text", true],
    ["text", "other", false],
    [undefined, null, true],
    [undefined, false, true],
    ["", null, false],
    [0, null, false],
    ["Red", { id: "sel1", name: "Red", color: "redBright" }, true],
    ["Red", { id: "sel1", name: "Blue" }, false],
    [["rec1", "rec2"], [{ id: "rec1", name: "One" }, { id: "rec2" }], true],
    [["rec1"], [{ id: "rec1", name: "One" }, { id: "rec2" }], false],
    [[], [{ id: "rec1" }], false],
    [{ id: "usr1" }, { id: "usr1", name: "Ann" }, false],
    [undefined, [], false],
  ] as [unknown, unknown, boolean][])("a cell %j, told as %j, is what was told: %s", ([cell, told, is]) => {
    expect(isAsTold(cell, told)).toBe(is);
  });

  test("a cursor that cannot be read follows from the number of payloads", () => {
    const read = (cursor: unknown) => readBatch({ payloads: [{}, {}], cursor, mightHaveMore: "?" }, 5);
    for (const cursor of [null, "9", 0, -1, 1e300, undefined])
      expect(read(cursor)).toMatchObject({ cursor: 7, hasGap: false, mightHaveMore: true });
  });

  test.for([null, [], {}, { payloads: {}, cursor: 1, mightHaveMore: false }])(
    "%j is not an answer of the feed",
    (answer) => {
      expect(() => readBatch(answer, 1)).toThrow(expect.objectContaining({ code: "source_bad_answer" }));
    },
  );
});

describe.skipIf(!dataFolder)(`samples of a client library${dataFolder ? "" : ` (${noDataReason})`}`, () => {
  const { samples } = dataFolder
    ? JSON.parse(readFileSync(join(dataFolder, "field-schemas/webhook-payloads.json"), "utf8"))
    : { samples: {} };

  test("are read", () => {
    const { changes, error } = batch(
      { changedTablesById: { [T]: samples["WebhookPayload.TableChanged"] } },
      samples.WebhookPayload,
    );
    expect(error).toBeUndefined();
    expect(changes).toEqual({
      tables: new Map([
        [
          T,
          {
            created: ["rec00000000000000"],
            // Both the sample's spelling of the field in `current` and the one in `previous`.
            changed: new Map([["rec00000000000001", ["fld00000000000001", "fld0000000000001"]]]),
            told: new Map([["rec00000000000001", { fld00000000000001: "hello world" }]]),
            destroyed: ["rec00000000000002"],
            fieldsChanged: true,
            typesTold: new Map([["fld10000000000002", ["number"]]]),
            isUnreadable: false,
          },
        ],
      ]),
      tablesCreated: [],
      tablesDestroyed: ["tbl20000000000000", "tbl20000000000001"],
      tablesChanged: [T],
    });
    expect(readWebhooks({ webhooks: [samples.Webhook] })).toEqual([
      {
        id: "ach00000000000001",
        notificationUrl: "https://example.com/receive-ping",
        isEnabled: true,
        areNotificationsEnabled: true,
        nextCursor: 1,
        expiresMs: Date.parse("2023-01-25T00:00:00.000Z"),
      },
    ]);
  });
});
