/**
 * Converts a change to a webhook's payloads: what its filters let through, in the form of the reference, split if it is
 * large.
 */
import type { Cells, SandboxBase, SandboxField, SandboxTable } from "../model";
import type { Sandbox } from "../sandbox";
import type { StoreChange } from "../store";
import { type Json, metadata, type Payload, type PayloadHead, PayloadWriter } from "./payload-writer";
import type { RecordedChanges, TableChanges } from "./recorded-changes";
import {
  type ChangeType,
  type DataType,
  type Filters,
  type Includes,
  type Specification,
  scopeOf,
} from "./specification";
import { type CellPosition, PERMISSION_LEVEL, v2Cell } from "./v2-cell";

export function headOf(base: SandboxBase, change: StoreChange): PayloadHead {
  return {
    timestamp: new Date(change.timestampMs).toISOString(),
    baseTransactionNumber: change.transactionNumber,
    payloadFormat: "v0",
    actionMetadata: actionOf(base, change),
  };
}

function actionOf(base: SandboxBase, { source, user }: StoreChange): PayloadHead["actionMetadata"] {
  switch (source) {
    case "client":
    case "publicApi":
      return { source, sourceMetadata: { user: { ...user, permissionLevel: PERMISSION_LEVEL } } };
    case "formSubmission": {
      const viewId = [...base.tables.values()].flatMap((table) => table.views)[0]?.id;
      return { source, sourceMetadata: { viewId } };
    }
    case "automation":
      return { source, sourceMetadata: { automationId: "wflSandbox0000001" } };
    default:
      return { source };
  }
}

/** The webhook's payloads for a change; none if its filters let nothing through. */
export function payloadsFor(
  sandbox: Sandbox,
  base: SandboxBase,
  change: StoreChange,
  set: RecordedChanges,
  { options }: Specification,
): Payload[] {
  const { filters, includes = {} } = options;
  if (filters.fromSources && !filters.fromSources.includes(change.source)) return [];
  const { recordChangeScope: scopeId } = filters;
  const scope = scopeId === undefined ? undefined : scopeOf(base, scopeId);
  const writer = new PayloadWriter(headOf(base, change), sandbox.settings.webhooks.recordsPerPayload);
  const urlToken = sandbox.attachments.token();
  for (const [tableId, changes] of set.tables) {
    const table = base.tables.get(tableId);
    if (!table || (scopeId !== undefined && scope?.table !== table)) continue;
    const place = (recordId: string): CellPosition | undefined => {
      const row = table.rows.get(recordId);
      return row && { sandbox, base, table, row, urlToken };
    };
    const part: Part = { writer, table, changes, filters, includes, viewId: scope?.view?.id, place };
    tableParts(part);
    fieldParts(part);
    recordParts(part);
  }
  if (filters.changeTypes?.includes("remove") ?? true)
    for (const id of set.destroyedTables)
      if (scopeId === undefined || scopeId === id) writer.destroyTable(id);
  return writer.payloads;
}

/** One table's changes while they pass a webhook's filters. */
interface Part {
  writer: PayloadWriter;
  table: SandboxTable;
  changes: TableChanges;
  filters: Filters;
  includes: Includes;
  /** The view that the webhook is limited to. */
  viewId: string | undefined;
  /** The position of a record's cells; undefined for a deleted record. */
  place: (recordId: string) => CellPosition | undefined;
}

function wants({ filters }: Part, data: DataType, type: ChangeType): boolean {
  return filters.dataTypes.includes(data) && (filters.changeTypes?.includes(type) ?? true);
}

function tableParts(part: Part): void {
  const { writer, table, changes } = part;
  const { previousMetadata: previous } = changes;
  if (changes.isCreated) {
    if (wants(part, "tableMetadata", "add")) writer.createTable(table);
  } else if (previous && wants(part, "tableMetadata", "update"))
    writer.at(table.id).changedMetadata = { current: metadata(table), previous: metadata(previous) };
}

function fieldParts(part: Part): void {
  const { writer, table, changes, filters, includes } = part;
  const isWatched = (fieldId: string) => filters.watchSchemasOfFieldIds?.includes(fieldId) ?? true;
  if (wants(part, "tableFields", "add"))
    for (const [id, { name, type }] of changes.createdFields)
      if (isWatched(id)) writer.put(table.id, "createdFieldsById", id, { name, type });
  if (wants(part, "tableFields", "update"))
    for (const [id, { current, previous }] of changes.changedFields) {
      const shown = changedField(current, previous, includes.includePreviousFieldDefinitions === true);
      if (shown && isWatched(id)) writer.put(table.id, "changedFieldsById", id, shown);
    }
  if (wants(part, "tableFields", "remove"))
    for (const id of changes.destroyedFields)
      if (isWatched(id)) writer.push(table.id, "destroyedFieldIds", id);
}

function recordParts(part: Part): void {
  const { writer, table, changes, filters, viewId } = part;
  const watched = filters.watchDataInFieldIds;
  if (watched && !table.fields.some((field) => watched.includes(field.id))) return;
  if (wants(part, "tableData", "add")) createdRecords(part);
  if (wants(part, "tableData", "update")) changedRecords(part);
  if (wants(part, "tableData", "remove"))
    for (const id of changes.destroyedRecords) writer.pushRecord(table.id, viewId, id);
}

function createdRecords({ writer, table, changes, viewId, place }: Part): void {
  for (const [id, { createdTime, cells }] of changes.createdRecords) {
    const at = place(id);
    if (!at) continue;
    const cellValuesByFieldId = shownCells(at, cells);
    // An empty cell of a new record is absent, as in the records API.
    for (const [fieldId, value] of Object.entries(cellValuesByFieldId))
      if (value === null) delete cellValuesByFieldId[fieldId];
    writer.putRecord(table.id, viewId, "createdRecordsById", id, { createdTime, cellValuesByFieldId });
  }
}

function changedRecords({ writer, table, changes, filters, includes, viewId, place }: Part): void {
  const watchedIds = filters.watchDataInFieldIds;
  for (const [id, { current, previous }] of changes.changedRecords) {
    const at = place(id);
    if (!at) continue;
    const cellValuesByFieldId = shownCells(at, current, watchedIds);
    if (Object.keys(cellValuesByFieldId).length === 0) continue;
    const shown: Json = { current: { cellValuesByFieldId } };
    if (includes.includePreviousCellValues)
      shown.previous = { cellValuesByFieldId: shownCells(at, previous, watchedIds) };
    if (includes.includeCellValuesInFieldIds)
      shown.unchanged = {
        cellValuesByFieldId: unchangedCells(at, current, includes.includeCellValuesInFieldIds),
      };
    writer.putRecord(table.id, viewId, "changedRecordsById", id, shown);
  }
}

/** Cells of fields that still exist. */
function shownCells(place: CellPosition, cells: Cells, among?: string[]): Json {
  const shown: Json = {};
  for (const field of place.table.fields)
    if (Object.hasOwn(cells, field.id) && (!among || among.includes(field.id)))
      shown[field.id] = v2Cell(place, field, cells[field.id]);
  return shown;
}

function unchangedCells(place: CellPosition, current: Cells, wanted: string[] | "all"): Json {
  const { sandbox, base, table, row } = place;
  const shown: Json = {};
  for (const field of table.fields) {
    if (Object.hasOwn(current, field.id) || !(wanted === "all" || wanted.includes(field.id))) continue;
    const value = v2Cell(place, field, sandbox.computed.cell(base, table, row, field));
    if (value !== null) shown[field.id] = value;
  }
  return shown;
}

/** Only name and type: another option, such as a new choice, does not count as a change of the field. */
function changedField(
  current: SandboxField,
  previous: SandboxField,
  withPrevious: boolean,
): Json | undefined {
  const names = (["name", "type"] as const).filter((name) => current[name] !== previous[name]);
  if (names.length === 0) return undefined;
  const pick = (field: SandboxField) => Object.fromEntries(names.map((name) => [name, field[name]]));
  return withPrevious ? { current: pick(current), previous: pick(previous) } : { current: pick(current) };
}
