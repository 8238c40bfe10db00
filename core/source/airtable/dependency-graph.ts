/**
 * The dependencies in a base: which computed fields read a field, in the same record or through a link.
 *
 * Derived from the schema alone. The schema does not contain, and this graph does not know, conditions on the linked
 * records of a lookup, rollup or count, and formulas that read the time.
 */
import type { Hop } from "../change-feed";
import type { SourceField, SourceSchema, SourceTable } from "../types";

/** A field's cells, or the names that a link field's cells show in formulas and rollups. */
export type FieldNode = string;

export interface Edge {
  to: FieldNode;
  /** The table of the records of `to`. */
  tableId: string;
  /** Do cells of `to` change? False if it only stands for names. */
  isCell: boolean;
  /** Absent if both ends are in one record. */
  hop: Hop | undefined;
}

export interface DependencyGraph {
  edges: Map<FieldNode, Edge[]>;
  /**
   * From a link field to its inverse field, which is written with it. Not among the edges: the inverse of the inverse
   * is no third cell, and following it would visit the whole base.
   */
  otherSides: Map<FieldNode, Edge>;
}

type Add = (from: FieldNode, edge: Edge) => void;

export function dependencyGraph(schema: SourceSchema): DependencyGraph {
  const edges = new Map<FieldNode, Edge[]>();
  const otherSides = new Map<FieldNode, Edge>();
  const tables = new Map(schema.tables.map((table) => [table.id, table]));
  const add: Add = (from, edge) => {
    const known = edges.get(from);
    if (known) known.push(edge);
    else edges.set(from, [edge]);
  };
  for (const table of schema.tables) {
    for (const field of table.fields) {
      if (field.type === "links") addLink(add, otherSides, tables, table, field);
      else addReader(add, tables, table, field);
    }
  }
  // Names that no field reads have no edges.
  for (const [node, all] of edges) {
    edges.set(
      node,
      all.filter((edge) => edge.isCell || edges.has(edge.to)),
    );
  }
  return { edges, otherSides };
}

function addLink(
  add: Add,
  otherSides: Map<FieldNode, Edge>,
  tables: Map<string, SourceTable>,
  table: SourceTable,
  field: SourceField,
): void {
  const other = tables.get(textOption(field, "linkedTableId"));
  const hop = hopOver(table, field, other);
  const names = { to: namesOf(field), tableId: table.id, isCell: false };
  add(field.id, { ...names, hop: undefined });
  const primary = other && fieldOf(other, other.primaryFieldId);
  if (primary) add(readAs(primary), { ...names, hop });
  if (hop?.inverseLinkFieldId !== undefined)
    otherSides.set(hop.inverseLinkFieldId, { to: field.id, tableId: table.id, isCell: true, hop });
}

function addReader(add: Add, tables: Map<string, SourceTable>, table: SourceTable, field: SourceField): void {
  const cell = { to: field.id, tableId: table.id, isCell: true };
  for (const id of referencedFields(field)) {
    const read = fieldOf(table, id);
    if (read) add(readAs(read), { ...cell, hop: undefined });
  }
  const link = fieldOf(table, textOption(field, "recordLinkFieldId"));
  if (link?.type !== "links") return;
  add(link.id, { ...cell, hop: undefined });
  const other = tables.get(textOption(link, "linkedTableId"));
  const target = other && fieldOf(other, textOption(field, "fieldIdInLinkedTable"));
  // A lookup of links holds their ids; a rollup aggregates their names.
  if (target)
    add(field.type === "rollup" ? readAs(target) : target.id, { ...cell, hop: hopOver(table, link, other) });
}

function hopOver(table: SourceTable, link: SourceField, other: SourceTable | undefined): Hop | undefined {
  if (!other) return undefined;
  const inverse = fieldOf(other, textOption(link, "inverseLinkFieldId"));
  return {
    fromTableId: other.id,
    tableId: table.id,
    viaLinkFieldId: link.id,
    inverseLinkFieldId: inverse?.id,
  };
}

/** The fields of the same table that a formula (or a button, or an AI text) reads. */
function referencedFields({ options }: SourceField): string[] {
  const listed = options?.referencedFieldIds;
  if (Array.isArray(listed)) return listed.filter((id): id is string => typeof id === "string");
  const { formula } = options ?? {};
  return typeof formula === "string"
    ? [...formula.matchAll(/\{(fld[0-9A-Za-z]+)\}/g)].map(([, id]) => id!)
    : [];
}

function fieldOf(table: SourceTable, fieldId: string): SourceField | undefined {
  return table.fields.find((field) => field.id === fieldId);
}

function textOption({ options }: SourceField, name: string): string {
  const value = options?.[name];
  return typeof value === "string" ? value : "";
}

const namesOf = (link: SourceField): FieldNode => `names ${link.id}`;

/** A formula or rollup that reads a link reads the names of the linked records. */
const readAs = (field: SourceField): FieldNode => (field.type === "links" ? namesOf(field) : field.id);
