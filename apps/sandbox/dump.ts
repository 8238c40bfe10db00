/** The true state of a base of the sandbox, for comparison with what others know of it. */
import { STABLE_TOKEN } from "./attachments";
import type { Cells, SandboxBase, SandboxRow, SandboxTable } from "./model";
import { cellOut } from "./record";
import type { Sandbox } from "./sandbox";
import { shownTable } from "./schema";

export interface Dump {
  id: string;
  name: string;
  tables: (Record<string, unknown> & {
    id: string;
    name: string;
    /** In the order of creation; `fields` by field id, attachment URLs stable. */
    records: { id: string; createdTime: string; fields: Cells }[];
  })[];
}

/** Returns the schema and all records. */
export function dumpBase(sandbox: Sandbox, base: SandboxBase): Dump {
  const tables = [...base.tables.values()].map((table) => ({
    ...shownTable(table),
    id: table.id,
    name: table.name,
    records: [...table.rows.values()].map((row) => dumpRow(sandbox, base, table, row)),
  }));
  return { id: base.id, name: base.name, tables };
}

function dumpRow(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
): { id: string; createdTime: string; fields: Cells } {
  const fields: Cells = {};
  for (const field of table.fields) {
    const value = cellOut(sandbox, base, table, row, field, { byId: true }, STABLE_TOKEN);
    if (value !== undefined) fields[field.id] = value;
  }
  return { id: row.id, createdTime: row.createdTime, fields };
}
