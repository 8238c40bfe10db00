/** The selection of a base, and what can be selected, as the management API shows them. */
import { type BasetideError, invalid } from "../../errors";
import {
  type FieldTreatment,
  mayBeHashed,
  type NewTables,
  type SourceSchema,
  type SourceSelection,
  type TableSelection,
} from "../../source";

interface SelectionJson {
  new_tables: NewTables;
  tables: {
    table_id: string;
    copied: boolean;
    view_id?: string | null | undefined;
    omitted_fields?: string[] | undefined;
    hashed_fields?: string[] | undefined;
  }[];
}

export const EVERYTHING: SourceSelection = { newTables: "copy", tables: {} };

export function selectionJson({ newTables, tables }: SourceSelection): SelectionJson {
  return {
    new_tables: newTables,
    tables: Object.entries(tables).map(([tableId, { copied, viewId = null, fields = {} }]) => {
      const of = (treatment: FieldTreatment) => Object.keys(fields).filter((id) => fields[id] === treatment);
      return {
        table_id: tableId,
        copied,
        view_id: viewId,
        omitted_fields: of("omitted"),
        hashed_fields: of("hashed"),
      };
    }),
  };
}

/** @throws BasetideError `invalid_request` if a table or a field is listed twice */
export function selectionFromJson({ new_tables: newTables, tables: listed }: SelectionJson): SourceSelection {
  const entries = listed.map(
    ({ table_id: id, copied, view_id: viewId, omitted_fields = [], hashed_fields = [] }) => {
      const treated = [
        ...omitted_fields.map((fieldId) => [fieldId, "omitted"] as const),
        ...hashed_fields.map((fieldId) => [fieldId, "hashed"] as const),
      ];
      if (hasTwice(treated)) throw twice(`A field of the table ${id}`);
      const fields: Record<string, FieldTreatment> = Object.fromEntries(treated);
      const table: TableSelection = { copied, ...(viewId && { viewId }), fields };
      return [id, table] as const;
    },
  );
  const known = new Set<string>();
  for (const [id] of entries) if (known.size === known.add(id).size) throw twice(`The table ${id}`);
  return { newTables, tables: Object.fromEntries(entries) };
}

function hasTwice(entries: readonly (readonly [id: string, value: unknown])[]): boolean {
  return new Set(entries.map(([id]) => id)).size < entries.length;
}

/** The source's tables with their fields and views. */
export function selectableJson({ tables }: SourceSchema) {
  return tables.map(({ id, name, primaryFieldId, fields, views = [] }) => ({
    table_id: id,
    name,
    fields: fields.map((field) => ({
      field_id: field.id,
      name: field.name,
      type: field.sourceType,
      is_primary: field.id === primaryFieldId,
      may_be_hashed: mayBeHashed(field),
    })),
    views: views.map((view) => ({ view_id: view.id, name: view.name })),
  }));
}

function twice(what: string): BasetideError {
  return invalid(`${what} is listed twice. List it once.`);
}
