/**
 * One change of a base by table: the input of payloads, before any webhook's filters.
 *
 * Steps inside the change that cancel each other are not in it: a field that is created and renamed was created with
 * its last name, and one that is created and deleted never existed.
 */
import type { Cells, SandboxBase, SandboxField } from "../model";
import type { ChangeEvent, StoreChange } from "../store";

export interface TableChanges {
  isCreated: boolean;
  /** Name and description before, if one of them has changed. */
  previousMetadata?: { name: string; description?: string | undefined };
  createdFields: Map<string, SandboxField>;
  changedFields: Map<string, { current: SandboxField; previous: SandboxField }>;
  destroyedFields: Set<string>;
  createdRecords: Map<string, { createdTime: string; cells: Cells }>;
  /** Cells in stored form, by field id; null is an empty cell. A computed cell may have no known `previous`. */
  changedRecords: Map<string, { current: Cells; previous: Cells }>;
  destroyedRecords: Set<string>;
}

export interface RecordedChanges {
  /** Of tables that still exist. */
  tables: Map<string, TableChanges>;
  destroyedTables: Set<string>;
}

export function changeSetOf(base: SandboxBase, change: StoreChange): RecordedChanges {
  const set: RecordedChanges = { tables: new Map(), destroyedTables: new Set() };
  for (const event of change.events) add(set, event);
  for (const [tableId, changes] of set.tables) {
    const table = base.tables.get(tableId);
    if (!table || (table.name === changes.previousMetadata?.name && sameDescription(table, changes)))
      delete changes.previousMetadata;
  }
  return set;
}

/** The table's part of the set, created if it is new. */
export function changesOf(set: RecordedChanges, tableId: string): TableChanges {
  let changes = set.tables.get(tableId);
  if (!changes) {
    changes = {
      isCreated: false,
      createdFields: new Map(),
      changedFields: new Map(),
      destroyedFields: new Set(),
      createdRecords: new Map(),
      changedRecords: new Map(),
      destroyedRecords: new Set(),
    };
    set.tables.set(tableId, changes);
  }
  return changes;
}

function add(set: RecordedChanges, event: ChangeEvent): void {
  if (event.kind === "table_deleted") {
    if (!set.tables.get(event.tableId)?.isCreated) set.destroyedTables.add(event.tableId);
    set.tables.delete(event.tableId);
    return;
  }
  // Schema events come first: records of a deleted table are not reported.
  if (set.destroyedTables.has(event.tableId)) return;
  const changes = changesOf(set, event.tableId);
  switch (event.kind) {
    case "table_created":
      changes.isCreated = true;
      break;
    case "table_updated":
      changes.previousMetadata ??= event.previous;
      break;
    case "field_created":
      changes.createdFields.set(event.field.id, event.field);
      break;
    case "field_updated":
      updateField(changes, event.fieldId, event.current, event.previous);
      break;
    case "field_deleted":
      changes.changedFields.delete(event.fieldId);
      if (!changes.createdFields.delete(event.fieldId)) changes.destroyedFields.add(event.fieldId);
      break;
    case "record_created":
      changes.createdRecords.set(event.recordId, { createdTime: event.createdTime, cells: event.cells });
      break;
    case "record_updated":
      changes.changedRecords.set(event.recordId, { current: event.current, previous: event.previous });
      break;
    case "record_deleted":
      changes.destroyedRecords.add(event.recordId);
      break;
  }
}

function updateField(
  changes: TableChanges,
  fieldId: string,
  current: SandboxField,
  previous: SandboxField,
): void {
  if (changes.createdFields.has(fieldId)) {
    changes.createdFields.set(fieldId, current);
    return;
  }
  const before = changes.changedFields.get(fieldId)?.previous ?? previous;
  changes.changedFields.set(fieldId, { current, previous: before });
}

function sameDescription(table: { description?: string }, changes: TableChanges): boolean {
  return (table.description ?? "") === (changes.previousMetadata?.description ?? "");
}
