/**
 * Converts Airtable's webhook payloads to changes: which records, fields and tables changed, never their values.
 *
 * F1. Payloads are read in order and the last event of a record wins, so a record that is destroyed and restored
 *     exists, and one that is created and destroyed does not.
 * F2. An unreadable payload does not end the feed: it is reported as an error and the others are read.
 */
import { z } from "zod";
import type { ChangeBatch, ChangedTable, SourceChanges } from "../change-feed";
import { type AirtableIdKind, isAirtableId } from "./limits";
import { check } from "./schema";

/** The error code for a payload that has an unexpected form. */
export const UNREADABLE = "UNREADABLE_PAYLOAD";
/** Error payloads after which a webhook records no more changes. */
export const ENDING_ERRORS: ReadonlySet<string> = new Set(["INVALID_HOOK", "INVALID_FILTERS"]);
/** For an error payload without a code. */
const UNNAMED = "UNKNOWN_ERROR";

const idOf = (kind: AirtableIdKind) => z.string().refine((text) => isAirtableId(kind, text));
const [tableId, recordId] = [idOf("tbl"), idOf("rec")];
const ids = (id: z.ZodType<string>) => z.array(id).optional();
const byId = <Shape extends z.ZodType>(id: z.ZodType<string, string>, shape: Shape) =>
  z.record(id, shape).optional();
const fields = byId(z.string(), z.unknown());
const records = byId(recordId, z.unknown());
const cells = z.object({ cellValuesByFieldId: fields }).optional();

// `changedViewsById` is not read: only a webhook for a single view gets it, and leaving a view is not a deletion.
const wireTable = z.object({
  changedMetadata: z.unknown().optional(),
  createdFieldsById: fields,
  changedFieldsById: fields,
  destroyedFieldIds: ids(z.string()),
  createdRecordsById: records,
  changedRecordsById: byId(recordId, z.object({ current: cells, previous: cells })),
  destroyedRecordIds: ids(recordId),
});
const wirePayload = z.object({
  changedTablesById: byId(tableId, wireTable),
  createdTablesById: byId(tableId, z.object({ fieldsById: fields, recordsById: records })),
  destroyedTableIds: ids(tableId),
  error: z.boolean().optional(),
  code: z.string().optional(),
});
const wireFieldChange = z.object({ current: z.object({ type: z.string() }) });
const wireBatch = z.object({
  payloads: z.array(z.unknown()),
  cursor: z.number().int().min(1),
  mightHaveMore: z.boolean(),
});

/**
 * Reads one answer of the feed.
 *
 * @param asked the cursor of the request
 * @throws BasetideError `source_bad_answer` if it is not a list of payloads with a cursor
 */
export function readBatch(answer: unknown, asked: number): ChangeBatch {
  const { payloads, cursor, mightHaveMore } = check(wireBatch, answer, "list of webhook payloads");
  const collected: Collected = {
    tables: new Map(),
    created: new Set(),
    destroyed: new Set(),
    changed: new Set(),
  };
  let error: string | undefined;
  for (const payload of payloads) {
    const read = wirePayload.safeParse(payload);
    if (read.success) collect(collected, read.data);
    error ??= read.success ? errorOf(read.data) : UNREADABLE;
  }
  return {
    cursor,
    // A cursor that does not advance would be requested forever.
    mightHaveMore: mightHaveMore && cursor !== asked,
    payloads: payloads.length,
    changes: changesOf(collected),
    // The numbers of payloads are consecutive and end before the cursor.
    hasGap: cursor - payloads.length !== asked,
    error,
  };
}

function errorOf({ error, code }: z.infer<typeof wirePayload>): string | undefined {
  return error || code !== undefined ? (code ?? UNNAMED) : undefined;
}

interface Collected {
  tables: Map<string, CollectedTable>;
  created: Set<string>;
  destroyed: Set<string>;
  changed: Set<string>;
}

interface CollectedTable {
  created: Set<string>;
  changed: Map<string, Set<string>>;
  destroyed: Set<string>;
  fieldsChanged: boolean;
  typesTold: Map<string, string[]>;
}

function collect(into: Collected, payload: z.infer<typeof wirePayload>): void {
  for (const [id, { fieldsById, recordsById }] of entries(payload.createdTablesById)) {
    into.destroyed.delete(id);
    into.created.add(id);
    collectTable(into, id, { createdFieldsById: fieldsById, createdRecordsById: recordsById });
  }
  for (const [id, table] of entries(payload.changedTablesById)) {
    // A change after the record was destroyed means that it has been restored.
    if (into.destroyed.delete(id)) into.created.add(id);
    collectTable(into, id, table);
  }
  for (const id of payload.destroyedTableIds ?? []) {
    into.tables.delete(id);
    into.created.delete(id);
    into.changed.delete(id);
    into.destroyed.add(id);
  }
}

function collectTable(into: Collected, tableId: string, wire: Partial<z.infer<typeof wireTable>>): void {
  let table = into.tables.get(tableId);
  if (!table) {
    table = {
      created: new Set(),
      changed: new Map(),
      destroyed: new Set(),
      fieldsChanged: false,
      typesTold: new Map(),
    };
    into.tables.set(tableId, table);
  }
  if (wire.changedMetadata !== undefined) into.changed.add(tableId);
  if (entries(wire.createdFieldsById).length > 0 || entries(wire.changedFieldsById).length > 0)
    table.fieldsChanged = true;
  if ((wire.destroyedFieldIds ?? []).length > 0) table.fieldsChanged = true;
  for (const [id, change] of entries(wire.changedFieldsById)) {
    const { data } = wireFieldChange.safeParse(change);
    if (data) table.typesTold.set(id, [...(table.typesTold.get(id) ?? []), data.current.type]);
  }
  for (const [id] of entries(wire.createdRecordsById)) {
    table.destroyed.delete(id);
    table.changed.delete(id);
    table.created.add(id);
  }
  for (const [id, { current, previous }] of entries(wire.changedRecordsById)) {
    table.destroyed.delete(id);
    if (table.created.has(id)) continue;
    const fields = table.changed.get(id) ?? new Set();
    for (const [fieldId] of entries(current?.cellValuesByFieldId)) fields.add(fieldId);
    for (const [fieldId] of entries(previous?.cellValuesByFieldId)) fields.add(fieldId);
    table.changed.set(id, fields);
  }
  for (const id of wire.destroyedRecordIds ?? []) {
    table.created.delete(id);
    table.changed.delete(id);
    table.destroyed.add(id);
  }
}

function changesOf({ tables, created, destroyed, changed }: Collected): SourceChanges {
  const listed = (table: CollectedTable): ChangedTable => ({
    created: [...table.created],
    changed: new Map([...table.changed].map(([id, fields]) => [id, [...fields]])),
    destroyed: [...table.destroyed],
    fieldsChanged: table.fieldsChanged,
    typesTold: table.typesTold,
  });
  return {
    tables: new Map([...tables].map(([id, table]) => [id, listed(table)])),
    tablesCreated: [...created],
    tablesDestroyed: [...destroyed],
    tablesChanged: [...changed],
  };
}

function entries<T>(record: Record<string, T> | undefined): [string, T][] {
  return Object.entries(record ?? {});
}
