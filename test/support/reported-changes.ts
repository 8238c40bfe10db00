/**
 * Builds the feed's payload for a fake source's changes: the difference between two of its states.
 *
 * It reports the minimum that a source may report: no cells of fields that were created or changed their type, and no
 * order of fields.
 */
import type { SourceField, SourceRecord } from "../../core/source";
import type { Payload, TablePayload } from "./fake-feed";
import type { FakeSource, FakeTable } from "./fake-source";

type State = Map<string, Pick<FakeTable, "table" | "records">>;

export class ReportedChanges {
  readonly #source: FakeSource;
  #before: State;

  constructor(source: FakeSource) {
    this.#source = source;
    this.#before = stateOf(source);
  }

  /** The changes since the last call; undefined if none must be reported. */
  take(): Payload | undefined {
    const [before, after] = [this.#before, stateOf(this.#source)];
    this.#before = after;
    const changedTablesById: Record<string, TablePayload> = {};
    const createdTablesById: Record<string, unknown> = {};
    for (const [id, is] of after) {
      const was = before.get(id);
      if (was) {
        const changes = changesOf(was, is);
        if (Object.keys(changes).length > 0) changedTablesById[id] = changes;
      } else {
        const { name, fields } = is.table;
        const recordsById = Object.fromEntries([...is.records.keys()].map((record) => [record, {}]));
        createdTablesById[id] = { metadata: { name }, fieldsById: byId(fields), recordsById };
      }
    }
    const destroyedTableIds = [...before.keys()].filter((id) => !after.has(id));
    const parts = { changedTablesById, createdTablesById, destroyedTableIds };
    const told = Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0);
    return told.length > 0 ? Object.fromEntries(told) : undefined;
  }
}

function stateOf({ tables }: FakeSource): State {
  return new Map(tables.map(({ table, records }) => [table.id, structuredClone({ table, records })]));
}

function changesOf(
  was: Pick<FakeTable, "table" | "records">,
  is: Pick<FakeTable, "table" | "records">,
): TablePayload {
  const fieldsBefore = new Map(was.table.fields.map((field) => [field.id, field]));
  const fieldsAfter = new Map(is.table.fields.map((field) => [field.id, field]));
  const told = is.table.fields.filter((field) => fieldsBefore.get(field.id)?.type === field.type);
  const changed: Record<string, unknown> = {};
  for (const [id, record] of is.records) {
    const cells = differingCells(told, was.records.get(id), record);
    if (cells.length > 0) changed[id] = { current: { cellValuesByFieldId: Object.fromEntries(cells) } };
  }
  const newIds = [...is.records.keys()].filter((id) => !was.records.has(id));
  const renamed = is.table.fields.filter((field) => {
    const before = fieldsBefore.get(field.id);
    return before && !Bun.deepEquals(before, field);
  });
  const parts = {
    ...(was.table.name !== is.table.name && { changedMetadata: { current: { name: is.table.name } } }),
    createdFieldsById: byId(is.table.fields.filter(({ id }) => !fieldsBefore.has(id))),
    changedFieldsById: Object.fromEntries(
      renamed.map(({ id, name, sourceType }) => {
        const isRetyped = fieldsBefore.get(id)!.sourceType !== sourceType;
        return [id, { current: { name, ...(isRetyped && { type: sourceType }) } }];
      }),
    ),
    destroyedFieldIds: [...fieldsBefore.keys()].filter((id) => !fieldsAfter.has(id)),
    createdRecordsById: Object.fromEntries(newIds.map((id) => [id, {}])),
    changedRecordsById: changed,
    destroyedRecordIds: [...was.records.keys()].filter((id) => !is.records.has(id)),
  };
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0));
}

function differingCells(
  fields: SourceField[],
  was: SourceRecord | undefined,
  is: SourceRecord,
): [string, unknown][] {
  if (!was) return [];
  return fields.flatMap(({ id }): [string, unknown][] =>
    Bun.deepEquals(was.fields[id], is.fields[id]) ? [] : [[id, is.fields[id] ?? null]],
  );
}

function byId(fields: SourceField[]): Record<string, unknown> {
  return Object.fromEntries(fields.map(({ id, name, sourceType }) => [id, { name, type: sourceType }]));
}
