/** A worker that has just started syncs the rows of known tables while the schema cannot be read, in every mode. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Base, getBase } from "../../../core/control/bases";
import { type BrokenFleet, MODES, startBrokenFleet } from "../../support/broken-fleet";
import { rawAnswer } from "../../support/broken-source";
import { expectEqualToSource } from "../../support/equal-to-source";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 180_000 });

const LONG_MS = 60_000;

let scene: BrokenFleet;
let fleet: BrokenFleet["fleet"];
let sandbox: BrokenFleet["sandbox"];
let source: BrokenFleet["source"];

beforeAll(async () => {
  scene = await startBrokenFleet();
  ({ fleet, sandbox, source } = scene);
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const text = (name: string) => ({ name, type: "singleLineText" });

/** A base with a table in which every record shows a cell of another table. */
function createSource() {
  const { control } = sandbox;
  const id = control.createBase({
    tables: [
      { name: "Well", fields: [text("Name")], records: [{ fields: { Name: "first" } }] },
      { name: "Other", fields: [text("Name"), text("Note")], records: [{ fields: { Name: "first" } }] },
    ],
  });
  const user = { id: `usr${crypto.randomUUID()}`, email: "x@example.com" };
  const [well, other] = control.dump(id).tables;
  return { id, key: control.createKey({ bases: { [id]: "create" }, user }), well: well!, other: other! };
}

const current = ({ id }: Pick<Base, "id">) => getBase(fleet.ctx.db, id);

test("rows arrive, the schema is named, and what is new comes when it can be read", async () => {
  const bases = await Promise.all(
    Object.values(MODES).map(async (mode) => {
      const made = createSource();
      const base = await fleet.connect(made.id, { turbo: true, ...mode }, made.key);
      const isSynced = async () => {
        const { sync, live, settings } = await current(base);
        return sync && (!settings.live || live?.readAt);
      };
      await until(isSynced, { what: "it is synced", timeoutMs: LONG_MS });
      return { ...made, base };
    }),
  );
  const { control } = sandbox;
  const rename = (
    id: string,
    { id: tableId, records: [record] }: (typeof bases)[number]["well"],
    name: string,
  ) => control.updateRecords(id, tableId, [{ id: record!.id, fields: { Name: name } }]);
  await fleet.workers[0]!.stop();
  for (const { id, well, other } of bases) {
    source.answer(id, ({ path }) => (path.endsWith("/tables") ? rawAnswer(503, "<html>") : undefined));
    rename(id, well, "meanwhile");
    control.addField(id, other.id, text("New"));
  }
  await fleet.addWorker();
  for (const name of ["meanwhile", "edited"]) {
    for (const { id, base, well } of bases) {
      if (name === "edited") rename(id, well, name);
      const sql = await fleet.reader(base);
      await until(async () => (await sql`select from well where name = ${name}`).length > 0, {
        what: `${name} is in SQL`,
        timeoutMs: LONG_MS,
      });
    }
  }
  for (const { base } of bases) {
    await until(async () => (await current(base)).schemaError !== null, {
      what: "the schema is named",
      timeoutMs: LONG_MS,
    });
    expect(await current(base)).toMatchObject({ state: "active", error: null, failingTables: [] });
  }
  for (const { id } of bases) source.answer(id, null);
  for (const { base } of bases) {
    await until(() => expectEqualToSource(fleet, base).then(() => true), {
      what: "SQL equals the source",
      timeoutMs: LONG_MS,
      retryErrors: true,
    });
    expect((await current(base)).schemaError).toBeNull();
  }
});
