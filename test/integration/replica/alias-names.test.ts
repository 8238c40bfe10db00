/** Fields and tables may have the same names as the tables, columns and variables in the replica's SQL. */
import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import type postgres from "postgres";
import { expect, test, vi } from "vitest";
import { applyLinkViews, applySettings, snakeCase } from "../../../core/replica";
import type { FieldType, SourceRecord } from "../../../core/source";
import { testEngine } from "../../support/engine";
import { dumpTable } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 120_000 });

const RUNS = Number(process.env.HISTORIES ?? 8);

/** Every name in the replica's SQL: aliases, columns of lists, variables and parameters. */
const aliases = [...namesIn("../../../sql/replica/", ".sql"), ...namesIn("../../../core/replica/", ".ts")]
  .filter((name, index, all) => all.indexOf(name) === index && name === snakeCase(name))
  .sort();

function namesIn(folder: string, ending: string): string[] {
  const url = new URL(folder, import.meta.url);
  return readdirSync(url)
    .filter((file) => file.endsWith(ending))
    .flatMap((file) => [...readFileSync(new URL(file, url), "utf8").matchAll(/\b[a-z][a-z0-9_]*\b/g)])
    .filter(({ 0: word, index, input }) => {
      const before = input.slice(Math.max(0, index - 30), index);
      const after = input.slice(index + word.length, index + word.length + 20);
      // `… as x`, `from … x (columns)`, `x.column`, and columns in a list after an alias.
      return (
        /\b(?:as|from|join|update|into)\s+$|\bas [a-z]+ \([^)]*$/.test(before) || /^\.[a-z%{*]/.test(after)
      );
    })
    .map(([word]) => word);
}

const TYPES: FieldType[] = ["text", "number", "links"];
const cellOf = (type: FieldType, turn: number) =>
  type === "text" ? `v${turn}` : type === "number" ? turn : [`rec${turn}`, "recX"];

/**
 * A table with fields of these names goes through inserts, updates, rebuilds and deletes, and history has all of it.
 */
async function live(tableName: string, names: string[]): Promise<void> {
  await using engine = await testEngine();
  const types = names.map((_, index) => TYPES[index % TYPES.length]!);
  const fields = Object.fromEntries(names.map((name, index) => [name, types[index]!]));
  const record = (id: string, turn: number): SourceRecord =>
    sourceRecord(id, Object.fromEntries(types.map((type, index) => [`fld${index}`, cellOf(type, turn)])));
  const made = engine.source.add(sourceTable("tblP", tableName, fields), [
    record("rec1", 1),
    record("rec2", 1),
  ]);
  const { replica } = engine.replica;
  const { epoch } = engine.input();
  const sql = replica.sql as unknown as postgres.Sql;
  const sync = async () => {
    const report = await engine.sync();
    expect(report.error && `${report.error.code}: ${report.error.message}`).toBe(undefined);
  };
  await applySettings(replica, epoch, { history: true, notify: true });
  await sync();
  await applyLinkViews(replica, epoch, true);
  made.records.set("rec2", record("rec2", 2));
  made.records.set("rec3", record("rec3", 1));
  await sync();
  made.table.fields.push({ id: "fldNew", name: "Added later", type: "text", sourceType: "text" });
  made.records.set("rec3", record("rec3", 3));
  await sync();
  made.records.delete("rec1");
  await sync();
  await applyLinkViews(replica, epoch, false);
  const [table] = await sql<{ name: string }[]>`select name from public_swap._tables`;
  const rows = new Map<unknown, unknown>();
  for (const row of (await dumpTable(sql, table!.name)) as { id: string }[]) rows.set(row.id, row);
  expect([...rows.keys()]).toEqual(["rec2", "rec3"]);
  // The history results in the current rows.
  const told = new Map<unknown, Record<string, unknown>>();
  const changes = await sql`select record_id, operation, new from public._sync_history order by id`;
  for (const { record_id, operation, new: now } of changes) {
    if (operation === "delete") told.delete(record_id);
    else told.set(record_id, { ...told.get(record_id), ...now });
  }
  for (const [id, row] of rows) {
    const { id: _, added_later: _new, ...values } = row as Record<string, unknown>;
    expect(told.get(id)).toEqual(values);
  }
}

test("all SQL names at once are valid field names", async () => {
  expect(aliases).toEqual(expect.arrayContaining(["t", "n", "l", "o", "u", "source", "updated"]));
  await live("Readings", aliases);
});

test("any of them are valid names of a table and its fields", async () => {
  const names = fc.uniqueArray(fc.constantFrom(...aliases), { minLength: 1, maxLength: 5 });
  await fc.assert(fc.asyncProperty(fc.constantFrom(...aliases), names, live), {
    numRuns: RUNS,
    examples: ["t", "n", "l"].map((name): [string, string[]] => [name, [name]]),
  });
});
