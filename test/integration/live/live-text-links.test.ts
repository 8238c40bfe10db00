/** Live mode with "linked records as text": columns of links hold only the first link of each cell. */
import { expect, test, vi } from "vitest";
import type { SourceSelection, SourceTable } from "../../../core/source";
import { editor } from "../../support/fake-feed";
import { liveEngine } from "../../support/live-engine";
import { select } from "../../support/select";
import { recordOf, sourceField } from "../../support/teams";

vi.setConfig({ testTimeout: 60_000 });

type Fields = SourceTable["fields"];
type LookRow = { id: string; look: string[] };

const table = (id: string, name: string, fields: Fields): SourceTable => ({
  id,
  name,
  primaryFieldId: fields[0]!.id,
  fields,
});
const linksTo = (id: string, linkedTableId: string, inverseLinkFieldId?: string) =>
  sourceField(
    id,
    id.slice(-1),
    "links",
    inverseLinkFieldId ? { linkedTableId, inverseLinkFieldId } : { linkedTableId },
  );
const lookup = (id: string, recordLinkFieldId: string, fieldIdInLinkedTable: string) =>
  sourceField(id, "Look", "lookup", { recordLinkFieldId, fieldIdInLinkedTable });

/** A value in A, which B looks up, and C looks up in B: C1 holds B1 as its second link, and B1's first link to C is C9. */
async function twoHops(linkedRecordsAsText: boolean, selection?: SourceSelection) {
  const engine = await liveEngine();
  if (selection) select(engine, selection);
  const settings = { linkedRecordsAsText };
  const { source, webhook } = engine;
  const aOf = (value: string) => recordOf("recA1", { fldAValue: value, fldAB: ["recB9", "recB1"] });
  const bOf = (value: string) =>
    recordOf("recB1", { fldBName: "B1", fldBA: ["recA1"], fldBLook: [value], fldBC: ["recC9", "recC1"] });
  const cOf = (id: string, value: string) =>
    recordOf(id, { fldCName: id, fldCB: id === "recC1" ? ["recB0", "recB1"] : ["recB1"], fldCLook: [value] });
  const a = source.add(
    table("tblA", "A", [sourceField("fldAValue", "Value", "text"), linksTo("fldAB", "tblB", "fldBA")]),
    [aOf("old")],
  );
  const b = source.add(
    table("tblB", "B", [
      sourceField("fldBName", "Name", "text"),
      linksTo("fldBA", "tblA", "fldAB"),
      lookup("fldBLook", "fldBA", "fldAValue"),
      linksTo("fldBC", "tblC", "fldCB"),
    ]),
    [
      recordOf("recB0", { fldBName: "B0", fldBC: ["recC1"] }),
      bOf("old"),
      recordOf("recB9", { fldBName: "B9", fldBA: ["recA1"] }),
    ],
  );
  const c = source.add(
    table("tblC", "C", [
      sourceField("fldCName", "Name", "text"),
      linksTo("fldCB", "tblB", "fldBC"),
      lookup("fldCLook", "fldCB", "fldBLook"),
    ]),
    [cOf("recC9", "old"), cOf("recC1", "old")],
  );
  expect((await engine.sync({ settings })).error).toBeUndefined();
  engine.start({ settings });
  return {
    ...engine,
    looks: async () => ((await engine.rows("c")) as LookRow[]).map(({ look }) => look),
    /** A person sets the value: the source computes both lookups, and the feed reports only the value. */
    async edit() {
      b.records.set("recB1", bOf("new"));
      for (const id of ["recC9", "recC1"]) c.records.set(id, cOf(id, "new"));
      editor(webhook, { source, table: a }).put(aOf("new"));
      await engine.settled();
    },
  };
}

test.for([false, true])(
  "a lookup of a lookup follows a change, also behind second links, linked records as text: %s",
  async (isText) => {
    const { edit, looks, source } = await twoHops(isText);
    source.calls.length = 0;
    await edit();
    expect(await looks()).toEqual([["new"], ["new"]]);
    // Records are requested by id: no table is read whole.
    expect(source.calls.filter((call) => call.startsWith("list "))).toEqual([]);
  },
);

test.for<[string, SourceSelection["tables"]]>([
  ["the link of the changed records", { tblA: { copied: true, fields: { fldAB: "omitted" } } }],
  ["the link of the records between them", { tblB: { copied: true, fields: { fldBC: "omitted" } } }],
  ["the table of the changed records", { tblA: { copied: false } }],
  ["the table of the records between them", { tblB: { copied: false } }],
])("a lookup of a lookup follows a change as text, too, where %s is not copied", async ([, tables]) => {
  const { edit, looks } = await twoHops(true, { newTables: "copy", tables });
  await edit();
  expect(await looks()).toEqual([["new"], ["new"]]);
});

test("a lookup over a link without an inverse follows a change behind a second link, and so does what looks it up", async () => {
  const engine = await liveEngine();
  const settings = { linkedRecordsAsText: true };
  const task = (look: string) =>
    recordOf("rec2", {
      fldTName: "two",
      fldTs: ["rec0", "rec1"],
      fldTLook: ["zero", look],
      fldTP: ["recP1"],
    });
  const tasks = engine.source.add(
    table("tblT", "Tasks", [
      sourceField("fldTName", "Name", "text"),
      linksTo("fldTs", "tblT"),
      lookup("fldTLook", "fldTs", "fldTName"),
      linksTo("fldTP", "tblP", "fldPT"),
    ]),
    [recordOf("rec0", { fldTName: "zero" }), recordOf("rec1", { fldTName: "old" }), task("old")],
  );
  const project = (look: string) =>
    recordOf("recP1", { fldPName: "P1", fldPT: ["rec2"], fldPLook: ["zero", look] });
  const projects = engine.source.add(
    table("tblP", "Projects", [
      sourceField("fldPName", "Name", "text"),
      linksTo("fldPT", "tblT", "fldTP"),
      lookup("fldPLook", "fldPT", "fldTLook"),
    ]),
    [project("old")],
  );
  await engine.sync({ settings });
  engine.start({ settings });
  tasks.records.set("rec2", task("new"));
  projects.records.set("recP1", project("new"));
  editor(engine.webhook, { source: engine.source, table: tasks }).put(recordOf("rec1", { fldTName: "new" }));
  await engine.settled();
  expect(await engine.rows("tasks")).toMatchObject([{}, {}, { id: "rec2", look: ["zero", "new"] }]);
  expect(await engine.rows("projects")).toMatchObject([{ look: ["zero", "new"] }]);
});
