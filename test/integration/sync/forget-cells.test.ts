/** Cells that a selection no longer shows are nowhere in plain text, also if the sync that hides them is cut short. */
import { expect, test } from "vitest";
import type { SourceSelection } from "../../../core/source";
import { testEngine } from "../../support/engine";
import { select } from "../../support/select";
import { sourceRecord, sourceTable } from "../../support/source-records";

const SECRET = "ann@example.com";
const hashed: SourceSelection = {
  newTables: "ignore",
  tables: { tblC: { copied: true, fields: { fld1: "hashed" } } },
};

test.for([
  ["to its end", false],
  ["cut after the table was replaced, and then again", true],
] as const)("a write that is recorded while its field is hashed: the sync runs %s", async ([_, isCut]) => {
  const engine = await testEngine();
  const table = sourceTable("tblC", "Contacts", { Name: "text", Mail: "email" });
  engine.source.add(table, [sourceRecord("recC1", { fld0: "Ann", fld1: SECRET })]);
  select(engine, null);
  expect((await engine.sync()).error).toBeUndefined();
  const { sql } = engine.replica.replica;
  const logged = async () => JSON.stringify(await sql`select image from public_swap._recent_writes`);
  select(engine, hashed);
  let calls = 0;
  engine.source.before = async () => {
    if (calls++ !== 1) return;
    // By a proxy that does not know the selection yet.
    await sql`
      insert into public_swap._recent_writes (table_id, record_id, applied_version, gone, image, read_version, written)
      values ('tblC', 'recC1', nextval('public_swap._versions'), false, ${sql.json({ fields: { fld1: SECRET } })}, 1, true)
      on conflict (table_id, record_id) do update set image = excluded.image, written = true`;
    expect(await logged()).toContain(SECRET);
    if (isCut) await sql`alter function public_swap.forget_cells rename to forget_cells_`;
  };
  await engine.sync();
  if (isCut) {
    expect(await logged()).toContain(SECRET);
    await sql`alter function public_swap.forget_cells_ rename to forget_cells`;
  }
  engine.source.before = () => {};
  await engine.sync();
  expect(await logged()).not.toContain(SECRET);
});
