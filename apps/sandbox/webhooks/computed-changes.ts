/**
 * Finds the computed cells that a change affected: formulas of the same record; lookups, rollups and counts of others.
 *
 * K1. Every computed cell whose value differs after the change is reported. One whose previous value was not known may
 *     be reported although it is equal: only reported cells are remembered.
 *
 * Formulas that use the current time change without an edit, and are never reported for that.
 */
import type { Computed } from "../computed";
import { linkedTable, referencedFieldIds } from "../dependencies";
import {
  fieldById,
  idsOf,
  isEvaluated,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
  textOption,
} from "../model";
import { changesOf, type RecordedChanges, type TableChanges } from "./recorded-changes";

/** What depends on a node: a field, or the names that a link field shows (`names <field id>`). */
interface Edge {
  to: string;
  table: SandboxTable;
  /** The computed field that changes; absent if only names do. */
  field?: SandboxField;
  /**
   * A link field of `table`: its rows that link to a changed row are affected. Without it, the changed rows themselves.
   */
  via?: SandboxField;
}

type Graph = Map<string, Edge[]>;

/** Affected rows, by node. */
type Moved = Map<string, Set<string>>;

export class ComputedChanges {
  readonly #computed: Computed;
  /** JSON of the computed cells as last reported. */
  #known = new WeakMap<SandboxBase, WeakMap<SandboxRow, Map<string, string>>>();
  readonly #graphs = new WeakMap<SandboxBase, { schemaVersion: number; graph: Graph }>();

  constructor(computed: Computed) {
    this.#computed = computed;
  }

  /** Call it for a change that is not tracked: remembered values may be wrong after it. */
  forget(base: SandboxBase): void {
    this.#known.delete(base);
  }

  /** Adds the computed cells that changed to the set. */
  add(base: SandboxBase, set: RecordedChanges): void {
    const graph = this.#graph(base);
    const waiting: [string, SandboxTable, Set<string>][] = [];
    for (const [tableId, changes] of set.tables) {
      const table = base.tables.get(tableId);
      if (!table) continue;
      this.#fillCreated(base, table, changes);
      for (const [fieldId, rows] of changedCells(table, changes)) waiting.push([fieldId, table, rows]);
    }
    const moved: Moved = new Map();
    const touched = new Map<SandboxField, SandboxTable>();
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [node, table, rows] = next;
      const own = fieldById(table, node);
      if (own && isEvaluated(own)) touched.set(own, table);
      const fresh = freshRows(moved, node, rows);
      if (fresh.size === 0) continue;
      for (const edge of graph.get(node) ?? [])
        waiting.push([edge.to, edge.table, edge.via ? linkingRows(table, edge, fresh) : fresh]);
    }
    for (const [field, table] of touched) this.#report(base, set, table, field, moved.get(field.id)!);
  }

  /** A new record is shown with its computed cells. */
  #fillCreated(base: SandboxBase, table: SandboxTable, changes: TableChanges): void {
    for (const [id, { cells }] of changes.createdRecords) {
      const row = table.rows.get(id);
      if (!row) continue;
      for (const field of table.fields) {
        if (!isEvaluated(field)) continue;
        const value = this.#computed.cell(base, table, row, field);
        this.#remember(base, row, field, value);
        if (value !== undefined) cells[field.id] = value;
      }
    }
  }

  #report(
    base: SandboxBase,
    set: RecordedChanges,
    table: SandboxTable,
    field: SandboxField,
    rows: Set<string>,
  ): void {
    const changes = changesOf(set, table.id);
    for (const id of rows) {
      const row = table.rows.get(id);
      if (!row || changes.createdRecords.has(id) || (field.isFrozen && row.isLoaded)) continue;
      const value = this.#computed.cell(base, table, row, field);
      const { isSame, before } = this.#remember(base, row, field, value);
      if (isSame) continue;
      let record = changes.changedRecords.get(id);
      if (!record) {
        record = { current: {}, previous: {} };
        changes.changedRecords.set(id, record);
      }
      record.current[field.id] = value ?? null;
      if (before !== undefined) record.previous[field.id] = JSON.parse(before);
    }
  }

  #remember(
    base: SandboxBase,
    row: SandboxRow,
    field: SandboxField,
    value: unknown,
  ): { isSame: boolean; before?: string | undefined } {
    let rows = this.#known.get(base);
    if (!rows) {
      rows = new WeakMap();
      this.#known.set(base, rows);
    }
    let cells = rows.get(row);
    if (!cells) {
      cells = new Map();
      rows.set(row, cells);
    }
    const [before, after] = [cells.get(field.id), JSON.stringify(value ?? null)];
    cells.set(field.id, after);
    return { isSame: before === after, before };
  }

  #graph(base: SandboxBase): Graph {
    const known = this.#graphs.get(base);
    if (known?.schemaVersion === base.schemaVersion) return known.graph;
    const graph: Graph = new Map();
    for (const table of base.tables.values())
      for (const field of table.fields) addEdges(graph, base, table, field);
    this.#graphs.set(base, { schemaVersion: base.schemaVersion, graph });
    return graph;
  }
}

/**
 * Rows whose cell of a field has changed, by field. A computed field with a new definition may change in every row, and
 * so may every formula of a table that lost a field.
 */
function changedCells(table: SandboxTable, changes: TableChanges): Map<string, Set<string>> {
  const byField = new Map<string, Set<string>>();
  for (const [id, { current }] of changes.changedRecords)
    for (const fieldId of Object.keys(current)) {
      const rows = byField.get(fieldId);
      if (rows) rows.add(id);
      else byField.set(fieldId, new Set([id]));
    }
  for (const field of table.fields) {
    const isRedefined = changes.createdFields.has(field.id) || changes.changedFields.has(field.id);
    const isBroken = field.type === "formula" && changes.destroyedFields.size > 0;
    if (isEvaluated(field) && (isRedefined || isBroken)) byField.set(field.id, new Set(table.rows.keys()));
  }
  return byField;
}

/** Records `rows` at a node; returns those that were not there yet. */
function freshRows(moved: Moved, node: string, rows: Set<string>): Set<string> {
  const known = moved.get(node);
  if (!known) {
    moved.set(node, new Set(rows));
    return rows;
  }
  const fresh = rows.difference(known);
  for (const id of fresh) known.add(id);
  return fresh;
}

/** Rows of the edge's table that link to one of `rows`: by the inverse link if there is one, else by a scan of all. */
function linkingRows(table: SandboxTable, { table: linking, via }: Edge, rows: Set<string>): Set<string> {
  const inverse = fieldById(table, textOption(via!, "inverseLinkFieldId") ?? "");
  const found = new Set<string>();
  if (inverse) {
    for (const id of rows)
      for (const linkingId of idsOf(table.rows.get(id)?.cells[inverse.id])) found.add(linkingId);
    return found;
  }
  for (const row of linking.rows.values())
    if (idsOf(row.cells[via!.id]).some((id) => rows.has(id))) found.add(row.id);
  return found;
}

function addEdges(graph: Graph, base: SandboxBase, table: SandboxTable, field: SandboxField): void {
  const add = (from: string, edge: Edge) => {
    const edges = graph.get(from);
    if (edges) edges.push(edge);
    else graph.set(from, [edge]);
  };
  const link = fieldById(table, textOption(field, "recordLinkFieldId") ?? "");
  const far = link && linkedTable(base, link);
  const target = far && fieldById(far, textOption(field, "fieldIdInLinkedTable") ?? "");
  switch (field.type) {
    case "multipleRecordLinks": {
      const other = linkedTable(base, field);
      const primary = other && fieldById(other, other.primaryFieldId);
      const names = { to: namesOf(field), table };
      add(field.id, names);
      if (primary) add(readAs(primary), { ...names, via: field });
      break;
    }
    case "formula":
      for (const id of referencedFieldIds(table, textOption(field, "formula") ?? ""))
        add(readAs(fieldById(table, id)!), { to: field.id, table, field });
      break;
    case "lookup":
    case "multipleLookupValues":
    case "rollup":
    case "count":
      if (link) add(link.id, { to: field.id, table, field });
      if (link && target)
        add(field.type === "rollup" ? readAs(target) : target.id, { to: field.id, table, field, via: link });
      break;
    case "lastModifiedTime":
    case "lastModifiedBy": {
      const watched = idsOf(field.options?.referencedFieldIds);
      for (const other of table.fields)
        if (!isEvaluated(other) && (watched.length === 0 || watched.includes(other.id)))
          add(other.id, { to: field.id, table, field });
    }
  }
}

const namesOf = (link: SandboxField) => `names ${link.id}`;

/** A formula or rollup that reads a link reads the names of the linked records; a lookup has the ids. */
const readAs = (field: SandboxField) => (field.type === "multipleRecordLinks" ? namesOf(field) : field.id);
