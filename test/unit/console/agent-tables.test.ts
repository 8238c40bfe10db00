/** What an agent gets as the list of a base's tables, whatever its schema is. */
import { expect, test } from "vitest";
import { toResult } from "../../../apps/console/mcp/answer";
import { definitionOf } from "../../../apps/console/mcp/tools/describe-tables";
import { tableList } from "../../../apps/console/mcp/tools/list-tables";
import type { Base } from "../../../core/control/bases";
import type { TableSpec } from "../../../core/replica";

const MOST_BYTES = 8000;

test("the list of tables has at most 8 kB for a schema of 300,000 characters, and says how many are left out", () => {
  const tables = Array.from({ length: 150 }, (_, at) => tableOf(at));
  expect(JSON.stringify(tables).length).toBeGreaterThan(300_000);
  const counts = tables.map(({ tableId, name }) => ({ name, source_id: tableId, records: 12_345 }));
  const base = { tables: counts } as unknown as Base;
  const facts = { as_of: new Date(0).toISOString(), lag_ms: 400, is_complete: true };
  const whole = tableList(tables, base, facts);
  expect(Buffer.byteLength(JSON.stringify(toResult(whole)))).toBeLessThanOrEqual(MOST_BYTES);
  expect(whole.data.tables.length).toBeGreaterThan(20);
  expect(whole.data.tables.length + whole.data.more).toBe(150);
  expect(whole.head).toContain(`${whole.data.more} more tables match`);
  const found = tableList(tables, base, facts, "Feld 7 von 149");
  expect(found.data).toMatchObject({ tables: [{ name: "table_149", rows: 12_345 }], more: 0 });
});

test("a description that is cut inside of an emoji stays text that every client can read", () => {
  const description = `${"a".repeat(79)}🌳 and more`;
  const table = { ...tableOf(1), sourceName: `${"b".repeat(199)}🌳🌳`, description };
  const columns = table.columns.map((column) => ({ ...column, description, choices: [table.sourceName] }));
  const base = { tables: [] } as unknown as Base;
  const listed = tableList([table], base, { as_of: null, lag_ms: null, is_complete: false });
  const { text } = definitionOf({ ...table, columns }, [table], [], "full");
  for (const answer of [listed.text, text]) {
    expect(answer).toContain("a".repeat(79));
    expect(answer.isWellFormed()).toBe(true);
  }
});

function tableOf(at: number): TableSpec {
  const columns = Array.from({ length: 15 }, (_, field) => ({
    fieldId: `fld${at}x${field}`,
    name: `feld_${field}`,
    sourceName: `Feld ${field} von ${at} ☃`,
    description: "What this field is for, in a sentence.",
    type: "text",
    sourceType: "singleLineText",
    columnType: "text",
  }));
  return {
    tableId: `tbl${at}`,
    name: `table_${at}`,
    sourceName: `Tabelle ${at}`,
    description: "ä".repeat(500),
    columns,
  } as unknown as TableSpec;
}
