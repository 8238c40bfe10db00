/** A worker that has just started syncs the rows of known tables while the schema cannot be read, in every mode. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Base, getBase } from "../../../core/control/bases";
import { type BrokenFleet, MODES, startBrokenFleet } from "../../support/broken-fleet";
import { rawAnswer } from "../../support/broken-source";
import { expectEqualToSource } from "../../support/equal-to-source";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 });

const LONG_MS = 120_000;
/** Of a page of a slow table. */
const SLOW_MS = 1000;

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

/** @param others records of the second table */
function createSource(others = 1) {
  const { control } = sandbox;
  const records = (count: number) => Array.from({ length: count }, () => ({ fields: { Name: "first" } }));
  const id = control.createBase({
    tables: [
      { name: "Well", fields: [text("Name")], records: records(1) },
      { name: "Other", fields: [text("Name"), text("Note")], records: records(others) },
    ],
  });
  const user = { id: `usr${crypto.randomUUID()}`, email: "x@example.com" };
  const [well, other] = control.dump(id).tables;
  return { id, key: control.createKey({ bases: { [id]: "create" }, user }), well: well!, other: other! };
}

const current = ({ id }: Pick<Base, "id">) => getBase(fleet.ctx.db, id);

type Made = ReturnType<typeof createSource>;

/** Connects a base in every mode. */
const connected = (others?: number) =>
  Promise.all(
    Object.values(MODES).map(async (mode) => {
      const made = createSource(others);
      if (others) slowDown(made);
      return { ...made, base: await fleet.connect(made.id, { turbo: true, ...mode }, made.key) };
    }),
  );

function rename({ id, well }: Made, name: string): void {
  const [record] = well.records;
  sandbox.control.updateRecords(id, well.id, [{ id: record!.id, fields: { Name: name } }]);
}

function refuseSchema({ id }: Made): void {
  source.answer(id, ({ path }) => (path.endsWith("/tables") ? rawAnswer(503, "<html>") : undefined));
}

/** Lets the first sync take longer than the test. */
function slowDown({ id, other }: Made): void {
  source.answer(id, async ({ path }) => {
    if (path.includes(other.id)) await Bun.sleep(SLOW_MS);
    return undefined;
  });
}

async function arrived(base: Base, name: string): Promise<void> {
  const sql = await fleet.reader(base);
  const isThere = async () => (await sql`select from well where name = ${name}`).length > 0;
  await until(isThere, { what: `${name} is in SQL`, timeoutMs: LONG_MS, retryErrors: true });
}

async function schemaIsNamed(base: Base, state: Base["state"]): Promise<void> {
  await until(async () => (await current(base)).schemaError !== null, {
    what: "the schema is named",
    timeoutMs: LONG_MS,
  });
  expect(await current(base)).toMatchObject({ state, error: null, failingTables: [] });
}

async function equals(base: Base): Promise<void> {
  await until(() => expectEqualToSource(fleet, base).then(() => true), {
    what: "SQL equals the source",
    timeoutMs: LONG_MS,
    retryErrors: true,
  });
  expect((await current(base)).schemaError).toBeNull();
}

test("rows arrive, the schema is named, and what is new comes when it can be read", async () => {
  const bases = await connected();
  for (const { base } of bases) {
    const isSynced = async () => {
      const { sync, live, settings } = await current(base);
      return sync && (!settings.live || live?.readAt);
    };
    await until(isSynced, { what: "it is synced", timeoutMs: LONG_MS });
  }
  await fleet.workers[0]!.stop();
  for (const made of bases) {
    refuseSchema(made);
    rename(made, "meanwhile");
    sandbox.control.addField(made.id, made.other.id, text("New"));
  }
  await fleet.addWorker();
  for (const name of ["meanwhile", "edited"]) {
    for (const made of bases) {
      if (name === "edited") rename(made, name);
      await arrived(made.base, name);
    }
  }
  for (const { base } of bases) await schemaIsNamed(base, "active");
  for (const { id } of bases) source.answer(id, null);
  for (const { base } of bases) await equals(base);
});

test("the same in the middle of a first sync, which goes on when the schema can be read", async () => {
  const bases = await connected(4000);
  for (const { base } of bases) await arrived(base, "first");
  await fleet.workers.at(-1)!.stop();
  for (const made of bases) {
    expect((await current(made.base)).sync).toBeNull();
    refuseSchema(made);
    rename(made, "meanwhile");
  }
  await fleet.addWorker();
  for (const name of ["meanwhile", "edited", "edited again"]) {
    for (const made of bases) {
      if (name !== "meanwhile") rename(made, name);
      await arrived(made.base, name);
    }
  }
  for (const { base } of bases) {
    await schemaIsNamed(base, "starting");
    expect((await current(base)).sync).toBeNull();
  }
  for (const { id } of bases) source.answer(id, null);
  for (const { base } of bases) {
    await equals(base);
    await until(async () => (await current(base)).sync !== null, {
      what: "the first sync is complete",
      timeoutMs: LONG_MS,
    });
  }
});
