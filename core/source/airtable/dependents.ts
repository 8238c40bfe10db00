/**
 * Finds the records that have to be read again because a cell of another record changed: those that depend on it
 * through links.
 *
 * Cells of the same record are not considered, since a changed record is read whole.
 *
 * D1. `records` returns every record whose computed cells depend on a changed cell through links. It may return records
 *     that did not change: a maximum need not change with one of its values.
 */
import type { ChangedCells, Dependents, Hop } from "../change-feed";
import type { SourceSchema } from "../types";
import { type DependencyGraph, dependencyGraph, type Edge, type FieldNode } from "./dependency-graph";

export function dependentsOf(schema: SourceSchema): Dependents {
  const graph = dependencyGraph(schema);
  const fields = new Map(schema.tables.map((table) => [table.id, table.fields.map((field) => field.id)]));
  const startsOf = (tableId: string, fieldId: string | null): FieldNode[] => {
    const own = fields.get(tableId) ?? [];
    return fieldId === null ? own : own.filter((id) => id === fieldId);
  };
  return {
    hops: (tableId, fieldId) => hopsFrom(graph, startsOf(tableId, fieldId)),
    records: (changed, findLinking) => {
      const starts = changed.flatMap(({ tableId, fieldId, recordIds }) =>
        startsOf(tableId, fieldId).map((node): [FieldNode, Set<string>] => [node, new Set(recordIds)]),
      );
      return recordsFrom(graph, starts, findLinking).then((found) => without(found, changed));
    },
  };
}

/**
 * Returns whether a shown cell depends on other records over a link that no shown field holds, directly or by way of
 * cells that are not shown.
 */
export function hasHiddenDependencies(schema: SourceSchema, isShown: (fieldId: string) => boolean): boolean {
  const { edges } = dependencyGraph(schema);
  const all = [...edges].flatMap(([from, to]) => to.map((edge) => ({ from, ...edge })));
  const byTarget = Map.groupBy(all, ({ to }) => to);
  const needed = new Set<FieldNode>(
    all.filter(({ isCell, to }) => isCell && isShown(to)).map(({ to }) => to),
  );
  for (const node of needed) {
    for (const { from, hop } of byTarget.get(node) ?? []) {
      if (hop && !isShown(hop.viaLinkFieldId) && !isShown(hop.inverseLinkFieldId ?? "")) return true;
      needed.add(from);
    }
  }
  return false;
}

function hopsFrom(graph: DependencyGraph, starts: readonly FieldNode[]): Hop[] {
  const hops = new Map<string, Hop>();
  const seen = new Set<FieldNode>(starts);
  const follow = ({ to, hop }: Edge) => {
    seen.add(to);
    if (hop) hops.set(hop.viaLinkFieldId, hop);
  };
  for (const node of starts) {
    const other = graph.otherSides.get(node);
    if (other) follow(other);
  }
  // Iterating a Set includes elements that are added during the iteration.
  for (const node of seen) graph.edges.get(node)?.forEach(follow);
  return [...hops.values()];
}

/** Each node is visited once for each record that reaches it, so cycles end. */
async function recordsFrom(
  { edges, otherSides }: DependencyGraph,
  starts: [FieldNode, Set<string>][],
  findLinking: Parameters<Dependents["records"]>[1],
): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  const reached = new Map<FieldNode, Set<string>>();
  const waiting = new Map<FieldNode, Set<string>>();
  const reach = async ({ to, tableId, isCell, hop }: Edge, ids: Set<string>) => {
    const next = hop ? new Set(await findLinking(hop, [...ids])) : ids;
    add(waiting, to, next);
    if (isCell) add(found, tableId, next);
  };
  for (const [node, ids] of starts) {
    add(waiting, node, ids);
    const other = otherSides.get(node);
    if (other) await reach(other, ids);
  }
  for (const [node, ids] of waiting) {
    waiting.delete(node);
    const known = reached.get(node) ?? new Set();
    const fresh = ids.difference(known);
    reached.set(node, known.union(fresh));
    if (fresh.size === 0) continue;
    for (const edge of edges.get(node) ?? []) await reach(edge, fresh);
  }
  return found;
}

/** Excludes the changed records: they are read again anyway. */
function without(
  found: Map<string, Set<string>>,
  changed: readonly ChangedCells[],
): Map<string, Set<string>> {
  for (const { tableId, recordIds } of changed) {
    const records = found.get(tableId);
    for (const id of recordIds) records?.delete(id);
    if (records?.size === 0) found.delete(tableId);
  }
  return found;
}

function add(sets: Map<string, Set<string>>, key: string, ids: Set<string>): void {
  if (ids.size > 0) sets.set(key, (sets.get(key) ?? new Set()).union(ids));
}
