/** What a worker knows of a base before the source has answered, and plans with tables that cannot be changed. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Catalog, planSchema } from "../../core/replica";
import { typeMap } from "../../core/replica/type-map";
import type { FieldType, SourceField, SourceSchema, SourceSelection, SourceTable } from "../../core/source";
import { selectedSchema } from "../../core/source/selection";
import { recalledSchema } from "../../core/sync/engine/recalled-schema";

const types = Object.keys(typeMap) as FieldType[];
const settings = fc.record({
  linkedRecordsAsText: fc.boolean(),
  lookupsAsText: fc.boolean(),
  attachmentViews: fc.boolean(),
  pinnedNames: fc.boolean(),
});
const field = fc.record({
  name: fc.string({ minLength: 1 }),
  type: fc.constantFrom(...types),
  result: fc.option(fc.constantFrom(...types), { nil: undefined }),
  description: fc.option(fc.string(), { nil: undefined }),
  choices: fc.option(fc.array(fc.string(), { maxLength: 3 }), { nil: undefined }),
  linkedTableId: fc.option(fc.constantFrom("tbl0", "tbl1"), { nil: undefined }),
});
const table = fc.record({
  name: fc.string({ minLength: 1 }),
  description: fc.option(fc.string(), { nil: undefined }),
  fields: fc.array(field, { minLength: 1, maxLength: 5 }),
});
const schema = fc.array(table, { minLength: 1, maxLength: 4 }).map(
  (tables): SourceSchema => ({
    tables: tables.map(
      ({ fields, ...one }, at): SourceTable => ({
        ...one,
        id: `tbl${at}`,
        primaryFieldId: `fld${at}x0`,
        fields: fields.map(
          (of, nth): SourceField => ({ ...of, id: `fld${at}x${nth}`, sourceType: `t ${of.type}` }),
        ),
      }),
    ),
  }),
);
const selection = fc.record({
  newTables: fc.constantFrom<SourceSelection["newTables"][]>("copy", "ignore"),
  tables: fc.dictionary(
    fc.constantFrom("tbl0", "tbl1", "tbl2"),
    fc.record({
      copied: fc.boolean(),
      viewId: fc.option(fc.constant("viw1"), { nil: undefined }),
      fields: fc.dictionary(
        fc.constantFrom("fld0x0", "fld1x1", "fld2x0"),
        fc.constantFrom("omitted", "hashed"),
      ),
    }),
  ),
});
const stored = (plan: ReturnType<typeof planSchema>): Catalog =>
  new Map(plan.rebuild.map((spec) => [spec.tableId, { shape: 1, spec: JSON.parse(JSON.stringify(spec)) }]));

test("what the replica knows of a schema asks for no change of the replica", () => {
  fc.assert(
    fc.property(schema, settings, fc.option(selection), (source, types, selecting) => {
      const copied = selecting ? selectedSchema(selecting, source, String) : source;
      const catalog = stored(planSchema(new Map(), copied, types));
      const plan = planSchema(catalog, recalledSchema(catalog, selecting), types);
      expect([plan.inPlace, plan.rebuild, plan.drop]).toEqual([[], [], []]);
    }),
  );
});

test("a table that cannot be changed keeps its name, and changes that need none of these names are planned", () => {
  const renamed = fc.array(fc.string({ minLength: 1 }), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(
      schema,
      renamed,
      fc.subarray(["tbl0", "tbl1", "tbl2"]),
      fc.boolean(),
      (source, names, stuck, isTaken) => {
        const types = { linkedRecordsAsText: false, lookupsAsText: false };
        const catalog = stored(planSchema(new Map(), source, types));
        for (const id of stuck) {
          const one = catalog.get(id);
          if (one && isTaken) one.taken = "taken";
          else if (one) one.spec.isDamaged = true;
        }
        const tables = source.tables.map((one, at) => ({ ...one, name: names[at]! }));
        const plan = planSchema(catalog, { tables }, types);
        const changed = new Set(plan.inPlace.map(({ tableId }) => tableId));
        const kept = [...catalog].flatMap(([id, { spec }]) => (changed.has(id) ? [] : [spec.name]));
        for (const { name, tableId } of plan.inPlace) {
          expect(kept).not.toContain(name);
          expect(stuck).not.toContain(tableId);
        }
        if (isTaken) expect(plan.rebuild).toEqual([]);
        if (stuck.length === 0) {
          const all = tables.filter(({ name }, at) => name !== source.tables[at]!.name);
          expect([...changed].toSorted()).toEqual(all.map(({ id }) => id));
        }
      },
    ),
  );
});
