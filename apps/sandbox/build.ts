/**
 * Creates bases from data: an exact schema with records (control API), and the folders of captured bases.
 *
 * Nothing is checked against the field types, so that a test can store anything that a real answer could contain:
 * unknown types, odd names, any JSON in a cell.
 */
import { ControlError } from "./errors";
import {
  findField,
  isEmptyCell,
  isEvaluated,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
  type View,
} from "./model";
import type { Random } from "./random";
import type { Sandbox } from "./sandbox";
import { emptyBase, newField, newTable } from "./schema";
import { DEFAULT_USER } from "./store";
import { wholeSecondIso } from "./times";
import { newRow } from "./transaction";

export interface BaseInput {
  id?: string;
  name?: string;
  tables: TableInput[];
  /** `frozen` stores the computed cells of the given records; `live` (default) computes them. */
  computed?: "frozen" | "live";
}

export interface TableInput {
  id?: string;
  name: string;
  description?: string;
  /** The first field if absent. */
  primaryFieldId?: string;
  fields: FieldDefinition[];
  views?: View[];
  /** Cells by field name or id, as JSON. */
  records?: RecordInput[];
}

export interface FieldDefinition {
  id?: string;
  name: string;
  type: string;
  description?: string;
  options?: Record<string, unknown> | null;
  aggregation?: string;
}

export interface RecordInput {
  id?: string;
  createdTime?: string;
  fields: Record<string, unknown>;
}

/** Adds a base to the store as given. @throws ControlError for an id that is taken or a cell without a field */
export function buildBase(sandbox: Sandbox, input: BaseInput): SandboxBase {
  const { store } = sandbox;
  if (!Array.isArray(input.tables)) throw new ControlError("A base needs `tables`, a list.");
  const base = emptyBase(input.name ?? "Base", input.id ?? store.random.id("app"));
  if (store.bases.has(base.id))
    throw new ControlError(`There is already a base ${base.id}. Delete it first.`);
  const built = input.tables.map((table) => buildTable(base, table, store.random));
  for (const [i, table] of built.entries())
    addFields(base, table, input.tables[i]!, input.computed, store.random);
  for (const [i, table] of built.entries()) addRecords(sandbox, table, input.tables[i]!.records ?? []);
  if (input.computed !== "frozen") for (const table of built) completeInverses(base, table);
  settle(sandbox, base);
  store.bases.set(base.id, base);
  return base;
}

function buildTable(base: SandboxBase, input: TableInput, random: Random): SandboxTable {
  const table = newTable(input, random);
  if (input.views) table.views = input.views;
  base.tables.set(table.id, table);
  return table;
}

/** Runs after all tables exist, so that links and lookups find their targets. */
function addFields(
  base: SandboxBase,
  table: SandboxTable,
  input: TableInput,
  computed: BaseInput["computed"],
  random: Random,
): void {
  for (const definition of input.fields) {
    // Options are stored as given: the test decides what the schema says.
    const field = newField(base, table, { ...definition, options: undefined }, random);
    if (definition.options !== undefined) field.options = definition.options;
    if (computed === "frozen" && isEvaluated(field)) field.isFrozen = true;
    table.fields.push(field);
  }
  table.primaryFieldId = input.primaryFieldId ?? table.fields[0]?.id ?? "";
}

function addRecords(sandbox: Sandbox, table: SandboxTable, records: RecordInput[]): void {
  const nowMs = sandbox.store.now();
  for (const record of records) {
    const createdTime = record.createdTime ?? wholeSecondIso(nowMs);
    const id = record.id ?? sandbox.store.random.id("rec");
    const createdMs = Date.parse(createdTime) || nowMs;
    const row = newRow(table, { id, createdTime, user: DEFAULT_USER, nowMs: createdMs, isLoaded: true });
    for (const [name, value] of Object.entries(record.fields ?? {})) {
      const field = findField(table, name);
      if (!field) throw new ControlError(`The table "${table.name}" has no field "${name}".`);
      if (!isEmptyCell(value)) row.cells[field.id] = value;
    }
    if (table.rows.has(id)) throw new ControlError(`The table "${table.name}" has two records ${id}.`);
    table.rows.set(id, row);
  }
}

/** Fills the far side of each link from the near side; existing links stay. */
function completeInverses(base: SandboxBase, table: SandboxTable): void {
  for (const field of table.fields) {
    const other = base.tables.get(String(field.options?.linkedTableId));
    const inverse = other?.fields.find((one) => one.id === field.options?.inverseLinkFieldId);
    if (field.type !== "multipleRecordLinks" || !other || !inverse) continue;
    for (const row of table.rows.values()) linkBack(row, field, other, inverse);
  }
}

function linkBack(row: SandboxRow, field: SandboxField, other: SandboxTable, inverse: SandboxField): void {
  const ids = row.cells[field.id];
  if (!Array.isArray(ids)) return;
  for (const id of ids) {
    const linked = other.rows.get(String(id));
    if (!linked) continue;
    const back = linked.cells[inverse.id] ?? [];
    if (Array.isArray(back) && !back.includes(row.id)) linked.cells[inverse.id] = [...back, row.id];
  }
}

/** Gives every object its first version. */
export function settle(sandbox: Sandbox, base: SandboxBase): void {
  for (const table of base.tables.values()) {
    for (const row of table.rows.values()) row.version = sandbox.store.nextVersion();
    table.version = sandbox.store.nextVersion();
  }
  base.schemaVersion = sandbox.store.nextVersion();
  base.version = base.schemaVersion;
}
