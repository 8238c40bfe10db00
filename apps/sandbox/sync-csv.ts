/**
 * Simple CSV sync: the file's rows replace the table's, matched by the first column.
 */
import { writtenCells } from "./cells";
import { invalidRequest, unknownField } from "./errors";
import { findField, type SandboxBase, type SandboxRow, type SandboxTable } from "./model";
import { type ApiAnswer, type ApiRequest, okAnswer } from "./request";
import type { Sandbox } from "./sandbox";
import { writeContext } from "./writes";

/** Limits of the reference: bytes, rows, columns. */
const MAX_BYTES = 2 * 1024 * 1024;
const MAX_ROWS = 10_000;
const MAX_COLUMNS = 500;

export function syncCsv(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  request: ApiRequest,
): ApiAnswer {
  if (!request.header("content-type")?.startsWith("text/csv") || request.body.length > MAX_BYTES)
    throw invalidRequest();
  const [names = [], ...lines] = parseCsv(new TextDecoder().decode(request.body));
  if (names.length === 0 || names.length > MAX_COLUMNS || lines.length > MAX_ROWS) throw invalidRequest();
  const fields = names.map((name) => {
    const field = findField(table, name);
    if (!field) throw unknownField(name);
    return field;
  });
  sandbox.store.change(base, "sync", request.key.user, (transaction) => {
    const context = writeContext(sandbox, transaction, true, true);
    const byKey = new Map<unknown, SandboxRow>();
    for (const row of table.rows.values()) byKey.set(row.cells[fields[0]!.id], row);
    for (const line of lines) {
      const given = Object.fromEntries(fields.map((field, i) => [field.id, line[i] ?? ""]));
      const cells = writtenCells(context, (id) => fields.find((field) => field.id === id)!, given);
      const key = cells.get(fields[0]!);
      const row = byKey.get(key) ?? transaction.createRow(table, {});
      byKey.delete(key);
      for (const [field, value] of cells)
        if (JSON.stringify(row.cells[field.id]) !== JSON.stringify(value))
          transaction.setCell(table, row, field, value);
    }
    for (const row of byKey.values()) transaction.deleteRow(table, row);
  });
  return okAnswer({ success: true });
}

/** Rows of cells; quotes are doubled inside quoted cells. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    row.push(quoted === undefined ? (plain ?? "") : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  }
  return rows;
}
