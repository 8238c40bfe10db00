/** Pinned names and names of people's own: they hold through any history of a base's schema. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkOwnNames } from "../../core/control/bases/own-names";
import { type Catalog, type OwnName, planSchema, refusalOfName, type TableSpec } from "../../core/replica";
import type { SourceSchema, SourceTable } from "../../core/source";

const TYPES = { linkedRecordsAsText: false, lookupsAsText: false };
const WORDS = new Set(["order", "select", "user"]);

/** A replica in memory, which carries out plans at once. */
class Replica {
  catalog: Catalog = new Map();
  retired = new Map<string, string>();

  follow(source: SourceSchema, settings: { pinnedNames?: boolean; ownNames?: OwnName[] } = {}): this {
    const was = this.catalog;
    const plan = planSchema(was, source, { ...TYPES, ...settings }, [], this.retired);
    this.catalog = new Map(was);
    for (const spec of plan.inPlace) this.catalog.set(spec.tableId, stored(spec));
    for (const spec of plan.rebuild) this.catalog.set(spec.tableId, stored(spec));
    for (const { tableId, name } of plan.drop) {
      this.catalog.delete(tableId);
      if (plan.isPinned) this.retired.set(tableId, name);
    }
    const again = planSchema(this.catalog, source, { ...TYPES, ...settings }, [], this.retired);
    expect([again.inPlace, again.rebuild, again.drop]).toEqual([[], [], []]);
    return this;
  }

  /** SQL names by the source's ids: `tbl1`, `tbl1.fld1`. */
  get names(): Record<string, string> {
    return Object.fromEntries(
      [...this.catalog.values()].flatMap(({ spec }) => [
        [spec.tableId, spec.name],
        ...spec.columns.map((column) => [`${spec.tableId}.${column.fieldId}`, column.name]),
      ]),
    );
  }
}

function stored(spec: TableSpec) {
  return { shape: 1, spec: JSON.parse(JSON.stringify(spec)) as TableSpec };
}

/** Tables whose fields are given as `id: name`. */
function schema(tables: Record<string, [name: string, fields: Record<string, string>]>): SourceSchema {
  return {
    tables: Object.entries(tables).map(
      ([id, [name, fields]]): SourceTable => ({
        id,
        name,
        primaryFieldId: "fld0",
        fields: Object.entries(fields).map(([fieldId, fieldName]) => ({
          id: fieldId,
          name: fieldName,
          type: "text",
          sourceType: "singleLineText",
        })),
      }),
    ),
  };
}

const pinned = { pinnedNames: true };

test("a rename changes only what the comment says, and a new field takes no name that another has had", () => {
  const replica = new Replica().follow(schema({ tbl1: ["Tasks", { fld1: "Name", fld2: "State" }] }), pinned);
  replica.follow(schema({ tbl1: ["Work", { fld1: "Name", fld2: "Status", fld3: "State" }] }), pinned);
  expect(replica.names).toEqual({
    tbl1: "tasks",
    "tbl1.fld1": "name",
    "tbl1.fld2": "state",
    "tbl1.fld3": "state_2",
  });
  expect(replica.catalog.get("tbl1")!.spec).toMatchObject({ sourceName: "Work", namedFor: "Tasks" });
  expect(replica.catalog.get("tbl1")!.spec.columns[1]).toMatchObject({ sourceName: "Status" });
});

test("a field that is deleted and created again is a new one; one that comes back has its name", () => {
  const before = schema({ tbl1: ["Tasks", { fld1: "Name", fld2: "State" }], tbl2: ["People", {}] });
  const replica = new Replica().follow(before, pinned);
  replica.follow(schema({ tbl1: ["Tasks", { fld1: "Name", fld3: "State" }], tbl3: ["People", {}] }), pinned);
  expect(replica.names).toMatchObject({ "tbl1.fld3": "state_2", tbl3: "people_2" });
  replica.follow(before, pinned);
  expect(replica.names).toMatchObject({ "tbl1.fld2": "state", tbl2: "people" });
  // In one step, and handed over by a name of one's own.
  const ownNames = [{ tableId: "tbl1", fieldId: "fld4", name: "state" }];
  replica.follow(schema({ tbl1: ["Tasks", { fld1: "Name", fld4: "State" }] }), { ...pinned, ownNames });
  expect(replica.names).toMatchObject({ "tbl1.fld4": "state" });
});

test("turning pins on renames nothing, and turning them off only what was renamed meanwhile", () => {
  const named = (state: string, name: string) =>
    schema({ tbl1: ["Tasks", { fld1: name, fld2: state, fld3: name }] });
  const replica = new Replica().follow(named("State", "Name"));
  const names = replica.names;
  expect(names).toMatchObject({ "tbl1.fld1": "name", "tbl1.fld3": "name_2" });
  expect(replica.follow(named("State", "Name"), pinned).names).toEqual(names);
  expect(replica.follow(named("Status", "Name"), pinned).names).toEqual(names);
  expect(replica.follow(named("Status", "Name")).names).toEqual({ ...names, "tbl1.fld2": "status" });
  const columns = replica.catalog.get("tbl1")!.spec.columns;
  expect(columns.some((column) => "namedFor" in column || "isOwnName" in column)).toBe(false);
});

test("a name of one's own stays through renames in either mode, and leaves when it is no longer chosen", () => {
  const at = (table: string, field: string) => schema({ tbl1: [table, { fld1: field, fld2: "Other" }] });
  for (const pinnedNames of [false, true]) {
    const replica = new Replica().follow(at("Tasks", "Name"), { pinnedNames });
    const ownNames = [
      { tableId: "tbl1", fieldId: null, name: "jobs" },
      { tableId: "tbl1", fieldId: "fld1", name: "title" },
    ];
    replica.follow(at("Tasks", "Name"), { pinnedNames, ownNames });
    replica.follow(at("Work", "Label"), { pinnedNames, ownNames });
    expect(replica.names).toEqual({ tbl1: "jobs", "tbl1.fld1": "title", "tbl1.fld2": "other" });
    replica.follow(at("Work", "Label"), { pinnedNames });
    expect(replica.names).toEqual({ tbl1: "work", "tbl1.fld1": "label", "tbl1.fld2": "other" });
  }
});

test("names of one's own may be swapped, and one that another column took meanwhile waits", () => {
  const both = schema({ tbl1: ["Tasks", { fld1: "One", fld2: "Two" }] });
  const own = (one: string, two: string) => [
    { tableId: "tbl1", fieldId: "fld1", name: one },
    { tableId: "tbl1", fieldId: "fld2", name: two },
  ];
  const replica = new Replica().follow(both, { ...pinned, ownNames: own("a", "b") });
  replica.follow(both, { ...pinned, ownNames: own("b", "a") });
  expect(replica.names).toMatchObject({ "tbl1.fld1": "b", "tbl1.fld2": "a" });
  const late = schema({ tbl1: ["Tasks", { fld1: "One", fld2: "Two", fld3: "Three" }] });
  replica.follow(late, { ...pinned, ownNames: own("b", "a") });
  replica.follow(late, { ...pinned, ownNames: [{ tableId: "tbl1", fieldId: "fld1", name: "three" }] });
  expect(replica.names).toMatchObject({ "tbl1.fld3": "three", "tbl1.fld1": "three_2" });
});

const names = fc.constantFrom("State", "Status", "Name", "name!", "ID", "🎉", "Name 2", "a".repeat(70));
const tables = fc.dictionary(
  fc.constantFrom("tbl1", "tbl2", "tbl3"),
  fc.tuple(names, fc.dictionary(fc.constantFrom("fld1", "fld2", "fld3", "fld4", "fld5"), names)),
);

function isFieldOfOther(id: string, tables: object): boolean {
  return id.includes(".") && !(id.split(".")[0]! in tables);
}

test("I3: through any history, a pinned name stays with its table or field, and is given to no other", () => {
  fc.assert(
    fc.property(fc.array(tables, { minLength: 2, maxLength: 8 }), (history) => {
      const replica = new Replica();
      const given = new Map<string, string>();
      const holders = new Map<string, string>();
      for (const one of history) {
        replica.follow(schema(one), pinned);
        for (const [id, name] of Object.entries(replica.names)) {
          const place = `${id.includes(".") ? id.split(".")[0] : ""}/${name}`;
          expect([id, given.get(id) ?? name, holders.get(place) ?? id]).toEqual([id, name, id]);
          given.set(id, name);
          holders.set(place, id);
        }
        // The fields of a table that was dropped are forgotten with it.
        for (const id of given.keys()) if (isFieldOfOther(id, one)) given.delete(id);
        for (const [place, id] of holders) if (isFieldOfOther(id, one)) holders.delete(place);
      }
    }),
    { numRuns: 300 },
  );
});

const live = new Replica().follow(
  schema({ tbl1: ["Tasks", { fld1: "Name", fld2: "State" }], tbl2: ["People", { fld1: "Name" }] }),
);
const check = (wanted: OwnName[], foreign: string[] = [], before: OwnName[] = []) => {
  const specs = [...live.catalog.values()].map(({ spec }) => spec);
  return () => checkOwnNames({ wanted, before, tables: specs, foreign, words: WORDS });
};
const field = (fieldId: string | null, name: string, tableId = "tbl1"): OwnName => ({
  tableId,
  fieldId,
  name,
});

test.each([
  ["a table that is not there", [field(null, "x", "tbl9")], /no table tbl9/],
  ["a field that is not there", [field("fld9", "x")], /tasks has no field fld9/],
  ["a reserved word", [field("fld1", "order")], /order is a reserved word/],
  ["an own column", [field("fld1", "id")], /id is a name of Basetide/],
  ["a system column", [field("fld1", "ctid")], /ctid is a name/],
  ["an own relation", [field(null, "_sync_meta")], /_sync_meta is a name/],
  ["a catalog's name", [field(null, "pg_tasks")], /begins like the tables of Postgres/],
  ["upper case", [field("fld1", "Title")], /not snake_case/],
  ["a link view's name", [field(null, "tasks__related")], /not snake_case/],
  ["a leading digit", [field("fld1", "2nd")], /begin with a letter/],
  ["a quote", [field("fld1", 'a"b')], /not snake_case/],
  ["a long name", [field("fld1", "é".repeat(32))], /longer than 63 bytes/],
  [
    "another column's name",
    [field("fld1", "state")],
    /Column name of tasks cannot be named state: Column state/,
  ],
  ["another table's name", [field(null, "people")], /Table tasks cannot be named people/],
  ["the same name twice", [field("fld1", "x"), field("fld2", "x")], /cannot be named x/],
  ["one column twice", [field("fld1", "x"), field("fld1", "y")], /listed twice/],
])("refused: %s", (_, wanted, message) => {
  expect(check(wanted)).toThrow(expect.objectContaining({ code: "invalid_request" }));
  expect(check(wanted)).toThrow(message);
});

test("names that are free are accepted: a swap, one that another gives up, and a known one of a deleted field", () => {
  expect(check([field("fld1", "state"), field("fld2", "name")])).not.toThrow();
  expect(check([field(null, "people"), field(null, "tasks", "tbl2")])).not.toThrow();
  const gone = field("fld9", "gone");
  expect(check([gone], [], [gone])).not.toThrow();
  expect(check([field(null, "theirs")], ["theirs"])).toThrow(/Another object/);
  for (const name of ["due_on", "größe", "a1_b2"])
    expect(refusalOfName(name, "column", WORDS)).toBeUndefined();
});
