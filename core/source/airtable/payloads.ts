/**
 * Converts Airtable's webhook payloads to changes: which records, fields and tables changed. Values are passed on as they are.
 *
 * F1. Payloads are read in order and the last event of a record wins, so a record that is destroyed and restored
 *     exists, and one that is created and destroyed does not.
 * F2. What cannot be read in a payload does not end the feed, and is not lost. It is said of the table that it belongs to;
 *     if that is not known either, the payload is reported as an error. The rest is read.
 */

import { isObject } from "../../json";
import type { ChangeBatch, ChangedTable, SourceChanges } from "../change-feed";
import { isAirtableId } from "./limits";
import { listIn, textIn } from "./parts";

/** The error code for a payload that has an unexpected form. */
export const UNREADABLE = "UNREADABLE_PAYLOAD";
/** Error payloads after which a webhook records no more changes. */
export const ENDING_ERRORS: ReadonlySet<string> = new Set(["INVALID_HOOK", "INVALID_FILTERS"]);
/** For an error payload without a code. */
const UNNAMED = "UNKNOWN_ERROR";

const FEED = "list of webhook payloads";

/**
 * Reads one answer of the feed.
 *
 * @param asked the cursor of the request
 * @throws BasetideError `source_bad_answer` if it is not a list of payloads
 */
export function readBatch(answer: unknown, asked: number): ChangeBatch {
  const payloads = listIn(answer, "payloads", FEED);
  const { cursor: given, mightHaveMore } = answer as { cursor?: unknown; mightHaveMore?: unknown };
  // The numbers of payloads are consecutive and end before the cursor.
  const cursor = isCursor(given) ? given : asked + payloads.length;
  const collected: Collected = {
    tables: new Map(),
    created: new Set(),
    destroyed: new Set(),
    changed: new Set(),
  };
  let error: string | undefined;
  for (const payload of payloads) {
    const code = collect(collected, payload);
    error ??= code;
  }
  return {
    cursor,
    // A cursor that does not advance would be requested forever.
    mightHaveMore: (typeof mightHaveMore === "boolean" ? mightHaveMore : true) && cursor !== asked,
    payloads: payloads.length,
    changes: changesOf(collected),
    hasGap: cursor - payloads.length !== asked,
    error,
  };
}

export function isCursor(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

interface Collected {
  tables: Map<string, CollectedTable>;
  created: Set<string>;
  destroyed: Set<string>;
  changed: Set<string>;
}

interface CollectedTable {
  created: Set<string>;
  /** Null: any cell of the record may have changed. */
  changed: Map<string, Set<string> | null>;
  told: ChangedTable["told"];
  destroyed: Set<string>;
  fieldsChanged: boolean;
  typesTold: Map<string, string[]>;
  isUnreadable: boolean;
}

/** Collects the changes of a payload. @returns the code of an error payload, or of one that cannot be read completely */
function collect(into: Collected, payload: unknown): string | undefined {
  if (!isObject(payload)) return UNREADABLE;
  const { error, code } = payload;
  const flaws = { isUnreadable: false };
  for (const [id, table] of entriesOf(payload.createdTablesById, isTableId, flaws)) {
    into.destroyed.delete(id);
    into.created.add(id);
    const { fieldsById, recordsById } = isObject(table) ? table : {};
    collectTable(into, id, { createdFieldsById: fieldsById, createdRecordsById: recordsById });
  }
  for (const [id, table] of entriesOf(payload.changedTablesById, isTableId, flaws)) {
    // A change after the record was destroyed means that it has been restored.
    if (into.destroyed.delete(id)) into.created.add(id);
    collectTable(into, id, table);
  }
  for (const id of idsOf(payload.destroyedTableIds, isTableId, flaws)) {
    into.tables.delete(id);
    into.created.delete(id);
    into.changed.delete(id);
    into.destroyed.add(id);
  }
  if (error === true || (code !== undefined && code !== null)) return textIn(code) || UNNAMED;
  return flaws.isUnreadable ? UNREADABLE : undefined;
}

/** Collects the changes of a table; those that cannot be read may be of any record and any field. */
function collectTable(into: Collected, tableId: string, wire: unknown): void {
  let table = into.tables.get(tableId);
  if (!table) {
    table = {
      created: new Set(),
      changed: new Map(),
      told: new Map(),
      destroyed: new Set(),
      fieldsChanged: false,
      typesTold: new Map(),
      isUnreadable: false,
    };
    into.tables.set(tableId, table);
  }
  if (!isObject(wire)) {
    table.isUnreadable = true;
    return;
  }
  // `changedViewsById` is not read: only a webhook for a single view gets it, and leaving a view is not a deletion.
  if (wire.changedMetadata !== undefined) into.changed.add(tableId);
  const fieldsChanged = entriesOf(wire.changedFieldsById, isAnyId, table);
  const fieldsMade = entriesOf(wire.createdFieldsById, isAnyId, table);
  const fieldsGone = idsOf(wire.destroyedFieldIds, isAnyId, table);
  if (fieldsMade.length + fieldsChanged.length + fieldsGone.length > 0) table.fieldsChanged = true;
  for (const [id, change] of fieldsChanged) {
    const type = isObject(change) && isObject(change.current) ? textIn(change.current.type) : undefined;
    if (type !== undefined) table.typesTold.set(id, [...(table.typesTold.get(id) ?? []), type]);
  }
  for (const [id] of entriesOf(wire.createdRecordsById, isRecordId, table)) {
    table.destroyed.delete(id);
    table.changed.delete(id);
    table.created.add(id);
  }
  for (const [id, change] of entriesOf(wire.changedRecordsById, isRecordId, table)) {
    const isNamedBefore = table.destroyed.delete(id) || table.changed.has(id);
    if (table.created.has(id)) continue;
    if (isNamedBefore) table.told.delete(id);
    else tell(table, id, change);
    const known = table.changed.get(id);
    const cells = changedCellsOf(change);
    table.changed.set(id, cells && known !== null ? new Set(known).union(new Set(cells)) : null);
  }
  for (const id of idsOf(wire.destroyedRecordIds, isRecordId, table)) {
    table.created.delete(id);
    table.changed.delete(id);
    table.destroyed.add(id);
  }
}

/** Returns the fields of the cells that changed; undefined if they are not known. */
function changedCellsOf(change: unknown): string[] | undefined {
  if (!isObject(change)) return undefined;
  const flaws = { isUnreadable: false };
  const cells = [change.current, change.previous].flatMap((part) => {
    if (part === undefined) return [];
    if (!isObject(part)) flaws.isUnreadable = true;
    return isObject(part)
      ? entriesOf(part.cellValuesByFieldId, isAnyId, flaws).map(([fieldId]) => fieldId)
      : [];
  });
  return flaws.isUnreadable || cells.length === 0 ? undefined : cells;
}

function tell({ told }: CollectedTable, id: string, change: unknown): void {
  const cells = isObject(change) && isObject(change.current) && change.current.cellValuesByFieldId;
  if (isObject(cells)) told.set(id, cells);
}

/** See `ChangeFeed`. Payloads have choices, links and people as objects with an id and a name, and cells have one of these. */
export function isAsTold(cell: unknown, told: unknown): boolean {
  if (Array.isArray(told))
    return (
      Array.isArray(cell) &&
      cell.length === told.length &&
      told.every((one, index) => isAsTold(cell[index], one))
    );
  if (isObject(told)) return typeof cell === "string" && (cell === told.id || cell === told.name);
  // Empty cells are not in a record.
  return cell === told || (cell === undefined && (told === null || told === false));
}

/** Where a part that cannot be read is reported. */
interface Flawed {
  isUnreadable: boolean;
}

const isAnyId = () => true;
const isTableId = (id: string) => isAirtableId("tbl", id);
const isRecordId = (id: string) => isAirtableId("rec", id);

/** Returns the entries of a part that may be absent, whose keys are ids. */
function entriesOf(part: unknown, isId: (id: string) => boolean, flawed: Flawed): [string, unknown][] {
  if (part === undefined) return [];
  if (!isObject(part)) {
    flawed.isUnreadable = true;
    return [];
  }
  const entries = Object.entries(part);
  const named = entries.filter(([id]) => isId(id));
  if (named.length < entries.length) flawed.isUnreadable = true;
  return named;
}

/** Returns the ids in a list that may be absent. */
function idsOf(part: unknown, isId: (id: string) => boolean, flawed: Flawed): string[] {
  if (part === undefined) return [];
  const ids = Array.isArray(part) ? part.filter((id) => typeof id === "string" && isId(id)) : [];
  if (!Array.isArray(part) || ids.length < part.length) flawed.isUnreadable = true;
  return ids;
}

function changesOf({ tables, created, destroyed, changed }: Collected): SourceChanges {
  const listed = (table: CollectedTable): ChangedTable => ({
    created: [...table.created],
    changed: new Map([...table.changed].map(([id, fields]) => [id, [...(fields ?? [])]])),
    told: table.told,
    destroyed: [...table.destroyed],
    fieldsChanged: table.fieldsChanged,
    typesTold: table.typesTold,
    isUnreadable: table.isUnreadable,
  });
  return {
    tables: new Map([...tables].map(([id, table]) => [id, listed(table)])),
    tablesCreated: [...created],
    tablesDestroyed: [...destroyed],
    tablesChanged: [...changed],
  };
}
