/** Builds tables and records of a source. */
import type { FieldType, SourceField, SourceRecord, SourceTable } from "../../core/source";

/** A source table with fields given as `name: type`; field ids are `fld` and the position. */
export function sourceTable(id: string, name: string, fields: Record<string, FieldType>): SourceTable {
  return {
    id,
    name,
    primaryFieldId: "fld0",
    fields: Object.entries(fields).map(
      ([fieldName, type], index): SourceField => ({
        id: `fld${index}`,
        name: fieldName,
        type,
        sourceType: type,
      }),
    ),
  };
}

export function sourceRecord(id: string, fields: Record<string, unknown>): SourceRecord {
  return { id, createdTime: "2024-05-01T12:34:56.000Z", fields };
}
