/**
 * Completes cells of attachments that keep some of their files: SQL shows URLs, and the source wants ids.
 *
 * Of several operations that add to one cell, the first adds all: each replaces the whole cell, and what one has added
 * has no id before its call is answered.
 */
import type { AwaitedOperation, CellValues } from "../../../core/control/change-sets";
import type { BaseCalls, Failure } from "../change-sets/base-calls";
import type { KeptFile } from "./cells";

/** A cell has other files than SQL shows. */
export interface StaleFiles {
  kind: "stale";
  table: string;
  field: string;
  record: string;
}

const isKept = (one: unknown): one is KeptFile => typeof one === "object" && one !== null && "kept" in one;
const keepsSome = (cell: unknown): cell is unknown[] => Array.isArray(cell) && cell.some(isKept);
/** It keeps all files in their order, and adds some. */
const adds = (cell: unknown[]) => {
  const [first] = cell;
  return (
    isKept(first) &&
    cell.filter(isKept).length === first.of &&
    cell.slice(0, first.of).every((one, at) => isKept(one) && one.kept === at)
  );
};

/** Returns whether it writes a cell that keeps some of its files. */
export function keepsFiles({ fields }: AwaitedOperation): boolean {
  return Object.values(fields ?? {}).some(keepsSome);
}

/** Reads the records of such cells. Returns the operations as they can be sent. */
export async function withKeptFiles(
  calls: Pick<BaseCalls, "records">,
  operations: AwaitedOperation[],
): Promise<AwaitedOperation[] | StaleFiles | Failure> {
  const keeping = operations.filter(keepsFiles);
  const has = new Map<string, CellValues>();
  for (const [table, group] of Map.groupBy(keeping, ({ table }) => table)) {
    const read = await calls.records(table, [...new Set(group.map(({ record }) => record!))], true);
    if (!Array.isArray(read)) return read;
    for (const { id, fields } of read) has.set(id, fields);
  }
  const added = additions(operations);
  const sent = new Set<string>();
  const complete: AwaitedOperation[] = [];
  for (const operation of operations) {
    const { table, record = "", fields = {} } = operation;
    const cells: CellValues = {};
    for (const [field, cell] of Object.entries(fields)) {
      if (!keepsSome(cell)) {
        cells[field] = cell;
        continue;
      }
      const files = (has.get(record)?.[field] ?? []) as { id: string }[];
      const more = added.get(cellKey(operation, field));
      if (more && sent.has(cellKey(operation, field))) continue;
      sent.add(cellKey(operation, field));
      // A record that is gone is refused by the source.
      if (has.has(record) && cell.some((one) => isKept(one) && one.of !== files.length))
        return { kind: "stale", table, field, record };
      cells[field] = [
        ...cell.flatMap((one) => (isKept(one) ? (files[one.kept] ? [{ id: files[one.kept]!.id }] : []) : [])),
        ...(more ?? cell.filter((one) => !isKept(one))),
      ];
    }
    complete.push(operation.fields ? { ...operation, fields: cells } : operation);
  }
  return complete;
}

const cellKey = ({ table, record }: AwaitedOperation, field: string) => `${table} ${record} ${field}`;

/** What all operations add to a cell, by its key, where none does anything else with it. */
function additions(operations: AwaitedOperation[]): Map<string, unknown[]> {
  const added = new Map<string, unknown[]>();
  const others = new Set<string>();
  for (const operation of operations) {
    for (const [field, cell] of Object.entries(operation.fields ?? {})) {
      const key = cellKey(operation, field);
      if (keepsSome(cell) && adds(cell))
        added.set(key, [...(added.get(key) ?? []), ...cell.filter((one) => !isKept(one))]);
      else others.add(key);
    }
  }
  for (const key of others) added.delete(key);
  return added;
}
