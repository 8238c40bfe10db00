/** After any changes of a base: links agree on both sides, and caches are never stale. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { BaseInput } from "../../../apps/sandbox/build";
import type { Dump, SandboxHandle } from "../../../apps/sandbox/server";
import { call, type Json, quietSandbox } from "../../support/sandbox-support";

let sandbox: SandboxHandle;
let fresh: SandboxHandle;

beforeAll(async () => {
  [sandbox, fresh] = await Promise.all([quietSandbox(), quietSandbox()]);
});
afterAll(() => Promise.all([sandbox.stop(), fresh.stop()]));

interface Step {
  kind: "link" | "amount" | "name" | "delete" | "create" | "refused" | "list";
  table: number;
  row: number;
  others: number[];
  number: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("link", "link", "amount", "name", "delete", "create", "refused", "list"),
  table: fc.nat(1),
  row: fc.nat(30),
  others: fc.array(fc.nat(30), { maxLength: 4 }),
  number: fc.integer({ min: -9, max: 9 }),
});

test("after any history of edits, a base equals one that is built from its cells", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      sandbox.control.reset();
      fresh.control.reset();
      for (const { control } of [sandbox, fresh]) control.settings({ rateLimitOff: true });
      const baseId = sandbox.control.generate({ records: 16, tables: 2, fieldsPerTable: 11 });
      for (const one of steps) await play(baseId, one);
      const dump = sandbox.control.dump(baseId);
      const rebuilt = fresh.control.createBase(withoutComputed(dump));
      expect(recordsOf(fresh.control.dump(rebuilt))).toEqual(recordsOf(dump));
      expect(await listed(baseId)).toEqual(recordsOf(dump));
      expectLinksAgree(dump);
    }),
    { numRuns: 60 },
  );
});

/** Links are edited from either side: "Related" of a table, or its inverse of the other's. */
async function play(baseId: string, { kind, table, row, others, number }: Step): Promise<void> {
  const { tables } = sandbox.control.dump(baseId);
  const [here, there] = [tables[table]!, tables[1 - table]!];
  const path = `/${baseId}/${here.id}`;
  const target = here.records[row % Math.max(1, here.records.length)];
  const ids = others.flatMap((other) => there.records[other % Math.max(1, there.records.length)]?.id ?? []);
  const inverse = here.name === "Projects" ? "From Tasks" : "From Projects";
  const link = { [number > 0 ? "Related" : inverse]: ids };
  if (kind === "create") await call(sandbox, "POST", path, { fields: { Name: `new ${number}`, ...link } });
  if (kind === "list") await listed(baseId);
  if (!target) return;
  const update = (fields: object) => call(sandbox, "PATCH", `${path}/${target.id}`, { fields });
  if (kind === "link") await update(link);
  if (kind === "amount") await update({ Amount: number });
  if (kind === "name") await update({ Name: `row ${number}` });
  if (kind === "delete") await call(sandbox, "DELETE", `${path}/${target.id}`);
  if (kind === "refused") {
    const records = [
      { id: target.id, fields: { ...link, Name: "never" } },
      { id: target.id, fields: { Amount: "no number" } },
    ];
    expect((await call(sandbox, "PATCH", path, { records })).status).toBe(422);
  }
}

async function listed(baseId: string): Promise<unknown[]> {
  const { tables } = sandbox.control.dump(baseId);
  const records: unknown[] = [];
  for (const table of tables) {
    const { body } = await call(sandbox, "GET", `/${baseId}/${table.id}?returnFieldsByFieldId=true`);
    records.push(...(body.records as unknown as Json[]));
  }
  return records;
}

function recordsOf(dump: Dump): unknown[] {
  return dump.tables.flatMap((table) => table.records);
}

const COMPUTED = new Set(["formula", "rollup", "multipleLookupValues"]);

function withoutComputed(dump: Dump): BaseInput {
  const tables = dump.tables.map((table) => {
    const fields = table.fields as BaseInput["tables"][number]["fields"];
    const computed = new Set(fields.filter((field) => COMPUTED.has(field.type)).map((field) => field.id!));
    const records = table.records.map((record) => ({
      ...record,
      fields: Object.fromEntries(Object.entries(record.fields).filter(([id]) => !computed.has(id))),
    }));
    return { id: table.id, name: table.name, fields, records };
  });
  return { id: dump.id, tables };
}

function expectLinksAgree(dump: Dump): void {
  const pairs = new Map<string, string[]>();
  for (const table of dump.tables)
    for (const field of table.fields as {
      id: string;
      type: string;
      options?: { inverseLinkFieldId?: string };
    }[]) {
      if (field.type !== "multipleRecordLinks") continue;
      const key = [field.id, field.options?.inverseLinkFieldId].sort().join();
      const isFirst = key.startsWith(field.id);
      const found = table.records.flatMap(({ id, fields }) =>
        ((fields[field.id] ?? []) as string[]).map((other) =>
          isFirst ? `${id} ${other}` : `${other} ${id}`,
        ),
      );
      const known = pairs.get(key);
      if (known) expect(found.sort()).toEqual(known);
      else pairs.set(key, found.sort());
    }
}
