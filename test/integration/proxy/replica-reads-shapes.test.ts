/**
 * Reads that the replica answers while its tables change: never a value that is missing, under the wrong name, or read
 * as another type.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

let stack: ProxyStack;

beforeAll(async () => {
  stack = await proxyStack({ SCHEMA_POLL_SECONDS: "0.01" });
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

interface Scene {
  baseId: string;
  base: Replicated;
  recordId: string;
}

const text = (name: string) => ({ name, type: "singleLineText" });

async function scene(): Promise<Scene> {
  const { control } = stack.sandbox;
  const record = (name: string) => ({ fields: { Name: name, Nick: `${name}'s nick`, Age: 5 } });
  const fields = [text("Name"), text("Nick"), { name: "Age", type: "number", options: { precision: 2 } }];
  const baseId = control.createBase({
    name: "People",
    tables: [
      { name: "People", fields, records: [record("Ada")] },
      { name: "Folk", fields, records: [record("Bob")] },
    ],
  });
  const base = await stack.connect(baseId);
  await base.sync();
  const one = { baseId, base, recordId: control.dump(baseId).tables[0]!.records[0]!.id };
  // The first one proves the key, the second one loads the replica's catalog.
  for (let reads = 0; reads < 2; reads++) await read(one, "People", "replica");
  return one;
}

async function read({ baseId }: Scene, path: string, from: "replica" | "source") {
  const response = await fetch(`${stack.endpoint}/v0/${baseId}/${path}`, {
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "x-basetide-read": from },
  });
  return {
    by: response.headers.get("x-basetide-answered-by"),
    answer: { status: response.status, json: await response.json() },
  };
}

/** @returns how many of the answers were the replica's */
async function expectTheSources(scene: Scene, paths: string[]): Promise<number> {
  let fromReplica = 0;
  for (const path of paths) {
    const [ours, theirs] = [await read(scene, path, "replica"), await read(scene, path, "source")];
    expect(ours.answer, path).toEqual(theirs.answer);
    if (ours.by === "replica") fromReplica++;
  }
  return fromReplica;
}

const READS = [
  "People",
  "People?returnFieldsByFieldId=true",
  "People?fields%5B%5D=Name",
  "People?filterByFormula=%7BName%7D%3D%22Ada%22",
];

test("a new field is in the replica's answers as soon as it is in SQL", async () => {
  const one = await scene();
  const { control } = stack.sandbox;
  control.addField(one.baseId, "People", text("Extra"));
  control.updateRecords(one.baseId, "People", [{ id: one.recordId, fields: { Extra: "new" } }]);
  await one.base.sync();
  expect(await expectTheSources(one, [...READS, "People?fields%5B%5D=Extra"])).toBe(READS.length + 1);
});

test("two fields that have swapped names keep their own values", async () => {
  const one = await scene();
  const { control } = stack.sandbox;
  control.renameField(one.baseId, "People", "Name", "Tmp");
  control.renameField(one.baseId, "People", "Nick", "Name");
  control.renameField(one.baseId, "People", "Tmp", "Nick");
  await one.base.sync();
  expect(await expectTheSources(one, READS)).toBe(READS.length);
});

test("two tables that have swapped names keep their own records", async () => {
  const one = await scene();
  const { control } = stack.sandbox;
  control.renameTable(one.baseId, "People", "Tmp");
  control.renameTable(one.baseId, "Folk", "People");
  control.renameTable(one.baseId, "Tmp", "Folk");
  await one.base.sync();
  expect(await expectTheSources(one, READS)).toBe(READS.length);
});

test("a retyped field is read with its current type", async () => {
  const one = await scene();
  const { control } = stack.sandbox;
  control.retypeField(one.baseId, "People", "Age", "singleLineText");
  control.updateRecords(one.baseId, "People", [{ id: one.recordId, fields: { Age: "five" } }]);
  await one.base.sync();
  const reads = [...READS, "People?filterByFormula=%7BAge%7D%3D%22five%22"];
  expect(await expectTheSources(one, reads)).toBe(reads.length);
});

type Edit = (baseId: string) => void;

const swap = (rename: (from: string, to: string) => void, one: string, other: string) => {
  rename(one, "Tmp");
  rename(other, one);
  rename("Tmp", other);
};
const table = fc.constantFrom("People", "Folk");
const field = fc.constantFrom("Name", "Nick", "Age", "Extra");
const edit: fc.Arbitrary<Edit> = fc.oneof(
  fc.constant<Edit>((id) =>
    swap((from, to) => stack.sandbox.control.renameTable(id, from, to), "People", "Folk"),
  ),
  fc.tuple(table, field, field).map(
    ([name, one, other]): Edit =>
      (id) =>
        swap((from, to) => stack.sandbox.control.renameField(id, name, from, to), one, other),
  ),
  fc.tuple(table, field).map(
    ([name, to]): Edit =>
      (id) =>
        stack.sandbox.control.addField(id, name, text(to)),
  ),
  fc.tuple(table, field).map(
    ([name, to]): Edit =>
      (id) =>
        stack.sandbox.control.deleteField(id, name, to),
  ),
  fc.tuple(table, field, fc.constantFrom("singleLineText", "multilineText", "number")).map(
    ([name, of, type]): Edit =>
      (id) => {
        stack.sandbox.control.retypeField(
          id,
          name,
          of,
          type,
          type === "number" ? { precision: 2 } : undefined,
        );
      },
  ),
);

/** Gives every text cell a value of its own. */
function refill(baseId: string): void {
  const { control } = stack.sandbox;
  for (const { id, fields, records } of control.dump(baseId).tables) {
    const texts = (fields as { id: string; type: string }[]).filter(({ type }) => type !== "number");
    for (const record of records) {
      const cells = Object.fromEntries(texts.map((one) => [one.id, `${one.id} of ${record.id}`]));
      control.updateRecords(baseId, id, [{ id: record.id, fields: cells }]);
    }
  }
}

test("after any changes of fields and tables, the replica answers as the source once SQL is up to date", {
  timeout: 120_000,
}, async () => {
  const history = fc.array(fc.array(edit, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const one = await scene();
      for (const edits of steps) {
        for (const make of edits) {
          try {
            make(one.baseId);
          } catch {
            // A missing object, or one that exists already, changes nothing.
          }
        }
        refill(one.baseId);
        await one.base.sync();
        const paths = ["People", "Folk", "Folk?returnFieldsByFieldId=true", `People/${one.recordId}`];
        expect(await expectTheSources(one, paths)).toBeGreaterThan(0);
      }
    }),
    { numRuns: 3, endOnFailure: true },
  );
});
