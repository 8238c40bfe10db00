/** Generates schemas in the form of the source's answers, of any shape that they may take. */
import fc from "fast-check";
import { FIELD_TYPES } from "../../core/source/airtable/schema";
import { anyJson, anyText } from "./fuzz";

/** From a small set, so that ids repeat: in another table, and sometimes in the same one. */
const id = (prefix: string) =>
  fc.oneof(
    { weight: 30, arbitrary: fc.integer({ min: 0, max: 400 }).map((number) => `${prefix}${number}`) },
    { weight: 10, arbitrary: fc.stringMatching(/^[0-9A-Za-z]{14}$/).map((tail) => prefix + tail) },
  );
const tableId = id("tbl");
const fieldId = id("fld");

const sourceType = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...FIELD_TYPES.keys()) },
  { weight: 1, arbitrary: anyText },
);
const name = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.constantFrom("Name", "name", "NAME!", "Id", "Created Time", "Table", "field_2"),
  },
  { weight: 3, arbitrary: anyText },
);
const description = fc.option(anyText, { nil: undefined });
const options = fc.option(
  fc.record(
    {
      linkedTableId: tableId,
      inverseLinkFieldId: fieldId,
      recordLinkFieldId: fieldId,
      fieldIdInLinkedTable: fieldId,
      referencedFieldIds: fc.oneof(fc.array(fieldId, { maxLength: 4 }), anyJson()),
      formula: fc.oneof(
        fieldId.map((id) => `{${id}} & 1`),
        anyText,
      ),
      result: fc.oneof(
        sourceType.map((type) => ({ type })),
        anyJson(),
      ),
      isValid: fc.boolean(),
    },
    { requiredKeys: [] },
  ),
);

const wireField = fc.record(
  { id: fieldId, name, type: sourceType, description, options },
  { requiredKeys: ["id", "name", "type"] },
);

/** A table of any name, with up to 12 fields. */
export const wireTable = fc.record(
  {
    id: tableId,
    name,
    description,
    primaryFieldId: fieldId,
    fields: fc.array(wireField, { maxLength: 12 }),
    views: anyJson(),
  },
  { requiredKeys: ["id", "name", "fields"] },
);

export const wireSchema = fc.record({ tables: fc.array(wireTable, { maxLength: 8 }) });
