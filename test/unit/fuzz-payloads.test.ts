/** Answers of the change feed: any JSON gives a batch, a batch that reports what it misses, or a coded error. */
import fc from "fast-check";
import { expect } from "vitest";
import type { ChangeBatch } from "../../core/source";
import { readBatch, UNREADABLE } from "../../core/source/airtable/payloads";
import { anyJson, anyText, codeOr, damaged, fuzz } from "../support/fuzz";

const id = (prefix: string) => fc.integer({ min: 0, max: 5 }).map((number) => `${prefix}${number}`);
const byId = (prefix: string, value: fc.Arbitrary<unknown>) =>
  fc.dictionary(id(prefix), value, { maxKeys: 3 });
const ids = (prefix: string) => fc.array(id(prefix), { maxLength: 3 });

const cells = fc.record({ cellValuesByFieldId: byId("fld", anyJson()) }, { requiredKeys: [] });
const tableChange = fc.record(
  {
    changedMetadata: anyJson(),
    createdFieldsById: byId("fld", anyJson()),
    changedFieldsById: byId("fld", anyJson()),
    destroyedFieldIds: ids("fld"),
    createdRecordsById: byId("rec", anyJson()),
    changedRecordsById: byId(
      "rec",
      fc.record({ current: cells, previous: cells, unchanged: anyJson() }, { requiredKeys: [] }),
    ),
    destroyedRecordIds: ids("rec"),
    changedViewsById: anyJson(),
  },
  { requiredKeys: [] },
);
const payload = fc.record(
  {
    timestamp: anyText,
    baseTransactionNumber: fc.nat(),
    actionMetadata: anyJson(),
    changedTablesById: byId("tbl", tableChange),
    createdTablesById: byId(
      "tbl",
      fc.record(
        { metadata: anyJson(), fieldsById: byId("fld", anyJson()), recordsById: byId("rec", anyJson()) },
        { requiredKeys: [] },
      ),
    ),
    destroyedTableIds: ids("tbl"),
    error: fc.boolean(),
    code: anyText,
  },
  { requiredKeys: [] },
);
const batch = fc.record({
  payloads: fc.array(fc.oneof({ weight: 6, arbitrary: payload }, { weight: 1, arbitrary: anyJson() }), {
    maxLength: 6,
  }),
  cursor: fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 60 }) },
    { weight: 1, arbitrary: fc.constantFrom(2 ** 53 - 1, 2 ** 53, 1e300, 1.5, 0, -1, "2") },
  ),
  mightHaveMore: fc.boolean(),
});

/** What a batch guarantees to its consumers. */
function expectBatch({ changes, cursor }: ChangeBatch): void {
  expect(Number.isSafeInteger(cursor) && cursor >= 1).toBe(true);
  const gone = new Set(changes.tablesDestroyed);
  for (const [tableId, table] of changes.tables) {
    expect(tableId).toMatch(/^tbl/);
    expect(gone.has(tableId)).toBe(false);
    const named = [...table.created, ...table.changed.keys(), ...table.destroyed];
    // The reader requests each one by its id, in a formula.
    for (const id of named) expect(id).toMatch(/^rec[\w-]{1,50}$/);
    expect(new Set(named).size).toBe(named.length);
  }
}

fuzz(
  "any JSON is a batch, or a bad answer",
  2000,
  fc.property(
    fc.oneof(
      anyJson(),
      anyJson(batch),
      fc.record({
        payloads: fc.array(anyJson(), { maxLength: 5 }),
        cursor: fc.nat(),
        mightHaveMore: fc.boolean(),
      }),
    ),
    (answer) => {
      const read = codeOr(() => readBatch(answer, 1));
      if (typeof read === "string") expect(read).toBe("source_bad_answer");
      else expectBatch(read);
    },
  ),
);

fuzz(
  "a partly invalid batch is read, and reports where that may hide a change",
  2000,
  fc.property(fc.oneof(batch, damaged(batch)), fc.integer({ min: 1, max: 60 }), (answer, asked) => {
    const read = codeOr(() => readBatch(answer, asked));
    if (typeof read === "string") expect(read).toBe("source_bad_answer");
    else expectBatch(read);
  }),
);

fuzz(
  "an unreadable payload does not affect its neighbors",
  500,
  fc.property(tableChange, anyJson(), (change, other) => {
    const whole = { changedTablesById: { tblA: change } };
    const batchOf = (...payloads: unknown[]) =>
      readBatch({ payloads, cursor: payloads.length + 1, mightHaveMore: false }, 1);
    const alone = batchOf(whole);
    const beside = batchOf({ destroyedTableIds: [other, 7] }, whole);
    expect(beside.error).toBe(UNREADABLE);
    expect(beside.changes).toEqual(alone.changes);
  }),
);
