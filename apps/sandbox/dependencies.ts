/**
 * Finds the other tables that the computed cells of a table read, and the formulas that depend on the current time.
 *
 * The result is valid for one state of the schema, and is cached until the schema changes.
 */
import { compileFormula } from "./formula";
import {
  fieldById,
  fieldResolver,
  type SandboxBase,
  type SandboxField,
  type SandboxTable,
  textOption,
} from "./model";

/** What the computed cells of one table depend on besides their own row. */
interface Dependencies {
  tables: SandboxTable[];
  /** Some formula uses the current time. */
  isVolatile: boolean;
}

const kept = new WeakMap<SandboxBase, { schemaVersion: number; byTable: Map<string, Dependencies> }>();

export function dependenciesOf(base: SandboxBase, table: SandboxTable): Dependencies {
  let cache = kept.get(base);
  if (!cache || cache.schemaVersion !== base.schemaVersion) {
    cache = { schemaVersion: base.schemaVersion, byTable: new Map() };
    kept.set(base, cache);
  }
  let found = cache.byTable.get(table.id);
  if (!found) {
    const walk: Walk = { base, seen: new Set(), tables: new Set(), isVolatile: false };
    for (const field of table.fields) follow(walk, table, field, false);
    found = { tables: [...walk.tables], isVolatile: walk.isVolatile };
    cache.byTable.set(table.id, found);
  }
  return found;
}

interface Walk {
  base: SandboxBase;
  seen: Set<string>;
  tables: Set<SandboxTable>;
  isVolatile: boolean;
}

/** @param isRead whether a computed field reads this one: then a link stands for the names of the linked rows */
function follow(walk: Walk, table: SandboxTable, field: SandboxField, isRead: boolean): void {
  const step = `${field.id} ${isRead}`;
  if (walk.seen.has(step)) return;
  walk.seen.add(step);
  if (field.type === "multipleRecordLinks" && isRead) {
    const linked = linkedTable(walk.base, field);
    const primary = linked && fieldById(linked, linked.primaryFieldId);
    if (linked) walk.tables.add(linked);
    if (linked && primary) follow(walk, linked, primary, true);
  }
  if (field.type === "multipleLookupValues" || field.type === "rollup") {
    const link = fieldById(table, textOption(field, "recordLinkFieldId") ?? "");
    const linked = link && linkedTable(walk.base, link);
    const target = linked && fieldById(linked, textOption(field, "fieldIdInLinkedTable") ?? "");
    if (linked) walk.tables.add(linked);
    if (linked && target) follow(walk, linked, target, true);
  }
  if (field.type === "formula") {
    const text = textOption(field, "formula") ?? "";
    if (/\b(NOW|TODAY)\s*\(/i.test(text)) walk.isVolatile = true;
    for (const id of referencedFieldIds(table, text)) follow(walk, table, fieldById(table, id)!, true);
  }
}

/** The fields that a formula reads; none for a text that is not a formula. */
export function referencedFieldIds(table: SandboxTable, text: string): string[] {
  try {
    return compileFormula(text, fieldResolver(table)).referencedFieldIds;
  } catch {
    // Not a formula: its cells are errors and depend on nothing.
    return [];
  }
}

export function linkedTable(base: SandboxBase, link: SandboxField): SandboxTable | undefined {
  return base.tables.get(textOption(link, "linkedTableId") ?? "");
}
