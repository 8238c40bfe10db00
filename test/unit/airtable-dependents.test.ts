/** Which records depend on a changed cell: examples, and any small base compared with the definition of its fields. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { FieldType, Hop, SourceField, SourceSchema } from "../../core/source";
import { dependentsOf } from "../../core/source/airtable/dependents";

const field = (id: string, type: FieldType, options: Record<string, unknown> = {}): SourceField => ({
  id,
  name: id,
  type,
  sourceType: type,
  options,
});
const table = (id: string, ...fields: SourceField[]) => ({
  id,
  name: id,
  primaryFieldId: fields[0]!.id,
  fields,
});
const links = (id: string, linkedTableId: string, inverseLinkFieldId?: string) =>
  field(id, "links", { linkedTableId, ...(inverseLinkFieldId && { inverseLinkFieldId }) });
const lookup = (
  id: string,
  recordLinkFieldId: string,
  fieldIdInLinkedTable: string,
  type: FieldType = "lookup",
) => field(id, type, { recordLinkFieldId, fieldIdInLinkedTable });
const formula = (id: string, ...referencedFieldIds: string[]) => field(id, "formula", { referencedFieldIds });

/** Countries have cities, cities have streets; each computes something from the next. */
const GEOGRAPHY: SourceSchema = {
  tables: [
    table(
      "countries",
      field("countryName", "text"),
      links("cities", "cities", "country"),
      lookup("inhabitants", "cities", "people", "rollup"),
      formula("crowded", "inhabitants"),
    ),
    table(
      "cities",
      field("cityName", "text"),
      field("people", "number"),
      field("motto", "text"),
      links("country", "countries", "cities"),
      lookup("isSaturated", "country", "crowded"),
    ),
    table("streets", field("streetName", "text"), links("city", "cities"), formula("label", "city")),
  ],
};

const via = (hops: Hop[]) => hops.map(({ viaLinkFieldId }) => viaLinkFieldId);

test("a change reaches rollups over links, their formulas, lookups of those, and names in formulas", () => {
  const { hops } = dependentsOf(GEOGRAPHY);
  expect(via(hops("cities", "motto"))).toEqual([]);
  expect(hops("cities", "people")).toEqual([
    { fromTableId: "cities", tableId: "countries", viaLinkFieldId: "cities", inverseLinkFieldId: "country" },
    { fromTableId: "countries", tableId: "cities", viaLinkFieldId: "country", inverseLinkFieldId: "cities" },
  ]);
  expect(hops("cities", "cityName")).toEqual([
    { fromTableId: "cities", tableId: "streets", viaLinkFieldId: "city", inverseLinkFieldId: undefined },
  ]);
  expect(via(hops("countries", "countryName"))).toEqual([]);
  expect(via(hops("cities", null)).sort()).toEqual(["cities", "city", "country"]);
  expect(hops("cities", "no such field")).toEqual([]);
});

test("the other side of a changed link is reached, but not beyond", async () => {
  const schema: SourceSchema = {
    tables: [
      table("a", field("aName", "text"), links("aToB", "b", "bToA")),
      table("b", field("bName", "text"), links("bToA", "a", "aToB")),
    ],
  };
  const cells: Record<string, string[]> = { b1: ["a1", "a2"], a1: ["b1"], a2: ["b1"] };
  const linking = (_hop: Hop, ids: string[]) =>
    Object.keys(cells).filter((from) => cells[from]!.some((to) => ids.includes(to)));
  const found = await dependentsOf(schema).records(
    [{ tableId: "a", fieldId: "aToB", recordIds: ["a1"] }],
    linking,
  );
  expect(found).toEqual(new Map([["b", new Set(["b1"])]]));
});

test("schemas with dangling or circular references are followed as far as possible", async () => {
  const schema: SourceSchema = {
    tables: [
      table(
        "t",
        field("x", "number"),
        links("self", "t"),
        lookup("up", "self", "down"),
        formula("down", "up", "x", "gone"),
        lookup("broken", "no link", "x"),
        links("lost", "no table", "no field"),
        field("odd", "formula", { referencedFieldIds: null, formula: "{fldX} & {fldY}" }),
      ),
    ],
  };
  const chain: Record<string, string> = { r2: "r1", r3: "r2", r1: "r3" };
  const linking = (_hop: Hop, ids: string[]) =>
    Object.keys(chain).filter((from) => ids.includes(chain[from]!));
  const found = await dependentsOf(schema).records(
    [{ tableId: "t", fieldId: "x", recordIds: ["r1"] }],
    linking,
  );
  expect(found).toEqual(new Map([["t", new Set(["r2", "r3"])]]));
});

// Any base: three tables of a text, two links and two computed fields each, two records a table.
const TABLES = ["t0", "t1", "t2"];
const recordsOf = (tableId: string) => [`${tableId}r0`, `${tableId}r1`];
const PLACES = TABLES.flatMap((id) => [`${id}name`, `${id}linkA`, `${id}linkB`, `${id}calcA`, `${id}calcB`]);

const base = fc.record({
  targets: fc.array(fc.constantFrom(...TABLES), { minLength: 6, maxLength: 6 }),
  computed: fc.array(
    fc.record({
      type: fc.constantFrom("lookup", "rollup", "count", "formula"),
      link: fc.constantFrom("linkA", "linkB"),
      far: fc.constantFrom("name", "linkA", "linkB", "calcA", "calcB"),
      near: fc.subarray(["name", "linkA", "linkB", "calcA", "calcB"]),
    }),
    { minLength: 6, maxLength: 6 },
  ),
  cells: fc.array(fc.subarray([0, 1]), { minLength: 12, maxLength: 12 }),
  start: fc.record({ place: fc.constantFrom(...PLACES), row: fc.nat(1) }),
});

test("D1: in any base, every record that by definition depends on a changed cell is found", async () => {
  await fc.assert(
    fc.asyncProperty(base, async ({ targets, computed, cells, start }) => {
      const schema: SourceSchema = {
        tables: TABLES.map((id, i) =>
          table(
            id,
            field(`${id}name`, "text"),
            links(`${id}linkA`, targets[i * 2]!),
            links(`${id}linkB`, targets[i * 2 + 1]!),
            ...["calcA", "calcB"].map((name, j) => {
              const { type, link, far, near } = computed[i * 2 + j]!;
              if (type === "formula") return formula(`${id}${name}`, ...near.map((one) => `${id}${one}`));
              const target = targets[i * 2 + (link === "linkA" ? 0 : 1)]!;
              return lookup(`${id}${name}`, `${id}${link}`, `${target}${far}`, type as FieldType);
            }),
          ),
        ),
      };
      const fields = new Map(schema.tables.flatMap((one) => one.fields.map((own) => [own.id, own] as const)));
      /** Ids that a link cell holds. */
      const linked = (record: string, linkId: string): string[] => {
        const i = TABLES.indexOf(record.slice(0, 2));
        const cell = cells[i * 4 + (linkId.endsWith("A") ? 0 : 2) + Number(record.at(-1))]!;
        const target = String(fields.get(linkId)!.options!.linkedTableId);
        return cell.map((row) => recordsOf(target)[row]!);
      };
      const moved = new Set([`${recordsOf(start.place.slice(0, 2))[start.row]} ${start.place}`]);
      const isMoved = (record: string, fieldId: string) => moved.has(`${record} ${fieldId}`);
      /** Has the value read from a cell changed? A reader of a link by name also reads the names behind it. */
      const reads = (record: string, fieldId: string, byName: boolean): boolean =>
        isMoved(record, fieldId) ||
        (byName &&
          fields.get(fieldId)!.type === "links" &&
          linked(record, fieldId).some((id) => isMoved(id, `${id.slice(0, 2)}name`)));
      const depends = (record: string, { type, options }: SourceField): boolean => {
        if (type === "formula")
          return (options!.referencedFieldIds as string[]).some((id) => reads(record, id, true));
        const link = options!.recordLinkFieldId as string;
        if (isMoved(record, link)) return true;
        const far = options!.fieldIdInLinkedTable as string;
        return linked(record, link).some((id) => reads(id, far, type === "rollup"));
      };
      for (let before = -1; before < moved.size; ) {
        before = moved.size;
        for (const id of TABLES)
          for (const record of recordsOf(id))
            for (const name of ["calcA", "calcB"])
              if (depends(record, fields.get(`${id}${name}`)!)) moved.add(`${record} ${id}${name}`);
      }
      const changed = { tableId: start.place.slice(0, 2), fieldId: start.place };
      const own = recordsOf(changed.tableId)[start.row]!;
      const hops = new Set<string>();
      const found = await dependentsOf(schema).records([{ ...changed, recordIds: [own] }], (hop, ids) => {
        hops.add(hop.viaLinkFieldId);
        return recordsOf(hop.tableId).filter((id) =>
          linked(id, hop.viaLinkFieldId).some((to) => ids.includes(to)),
        );
      });
      const expected = new Set([...moved].map((cell) => cell.split(" ")[0]!));
      expected.delete(own);
      expect(new Set([...found.values()].flatMap((ids) => [...ids]))).toEqual(expected);
      const announced = via(dependentsOf(schema).hops(changed.tableId, changed.fieldId));
      expect(announced).toEqual(expect.arrayContaining([...hops]));
    }),
    { numRuns: 500 },
  );
});
