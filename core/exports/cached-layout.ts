/** Keeps the layouts of diagrams by the shape of their tables: those of a large base take a while to compute. */
import { LruMap } from "../lru-map";
import type { TableSpec } from "../replica";
import { type Diagram, layOut } from "./diagram-layout";

const MOST_DIAGRAMS = 50;

/** By everything that a diagram shows. */
const diagrams = new LruMap<string, Diagram>(MOST_DIAGRAMS);

/** @returns the same object for the same shape: do not change it */
export function diagramOf(tables: TableSpec[]): Diagram {
  const key = String(Bun.hash(JSON.stringify(tables.map(shownOf))));
  const known = diagrams.get(key) ?? layOut(tables);
  diagrams.set(key, known);
  return known;
}

function shownOf({ tableId, name, sourceName, columns }: TableSpec) {
  const fields = columns.map((column) => [
    column.fieldId,
    column.name,
    column.columnType,
    column.linkedTableId,
  ]);
  return [tableId, name, sourceName, fields];
}
