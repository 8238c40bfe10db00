/** What the forms of a selection show and say, for a base and for one that is being connected. */
import { EVERYTHING } from "../../core/control/bases";
import { BasetideError } from "../../core/errors";
import {
  type FieldTreatment,
  isTableCopied,
  type NewTables,
  type SourceSchema,
  type SourceSelection,
  type SourceTable,
  type TableSelection,
} from "../../core/source";
import {
  NotSelectable,
  namedLike,
  SelectedFields,
  SelectedTables,
  type SelectionPlace,
  treatmentsFor,
} from "../../views/base/selection";
import { formResultOf } from "./form-error";
import { formText } from "./page-kit";

const NEW_TABLES: readonly NewTables[] = ["copy", "ask", "ignore"];

interface Showing {
  place: SelectionPlace;
  /** Null: everything is copied. */
  selection: SourceSelection | null;
  search: string;
  /** Of the table whose fields are shown; empty: all tables are. */
  tableId: string;
}

/** What a page asks for. */
export function askedIn(query: Record<string, unknown>): Pick<Showing, "search" | "tableId"> {
  return { search: textOf(query.q), tableId: textOf(query.table) };
}

/** @throws BasetideError `not_found` for a table that the source does not have */
export async function showSelection(
  showing: Showing,
  readSchema: () => Promise<SourceSchema>,
): Promise<preact.VNode> {
  const { failed, value: schema } = await formResultOf(readSchema);
  if (failed) return <NotSelectable path={showing.place.path} error={failed.message} />;
  return viewOf(showing, schema);
}

/**
 * Saves what the form says.
 *
 * @returns undefined if it was saved, else what to show
 */
export async function saveSelection(
  showing: Showing,
  body: unknown,
  source: {
    readSchema: () => Promise<SourceSchema>;
    save: (asked: SourceSelection, schema: SourceSchema) => Promise<unknown>;
  },
): Promise<{ view: preact.VNode; status: number } | undefined> {
  const { tableId } = showing;
  const { failed, value: schema } = await formResultOf(source.readSchema);
  if (failed) {
    const view = <NotSelectable path={showing.place.path} error={failed.message} />;
    return { view, status: failed.status };
  }
  const { failed: refused } = await formResultOf(async () => {
    const before = showing.selection ?? EVERYTHING;
    const asked =
      tableId === "" ? withTables(before, schema, body) : withFields(before, tableOf(schema, tableId), body);
    await source.save(asked, schema);
  });
  return refused && { view: viewOf(showing, schema, refused.message), status: refused.status };
}

function viewOf({ place, selection, search, tableId }: Showing, schema: SourceSchema, error?: string) {
  const props = { place, selection: selection ?? EVERYTHING, tables: schema.tables, search, error };
  if (tableId === "") return <SelectedTables {...props} />;
  return <SelectedFields {...props} table={tableOf(schema, tableId)} />;
}

/** @throws BasetideError `not_found` */
function tableOf({ tables }: SourceSchema, id: string): SourceTable {
  const found = tables.find((table) => table.id === id);
  if (found) return found;
  throw new BasetideError("not_found", `There is no table ${id} in the base in Airtable`);
}

/** Names every table that is copied without being named, before new ones are treated differently. */
function withTables(before: SourceSelection, { tables }: SourceSchema, body: unknown): SourceSelection {
  const newTables = NEW_TABLES.find((one) => one === formText(body, "new_tables")) ?? before.newTables;
  const shown = new Set(formText(body, "shown").split(" "));
  const set = formText(body, "set");
  const chosen: Record<string, TableSelection> = { ...before.tables };
  for (const { id } of tables) {
    const known = chosen[id];
    if (shown.has(id)) {
      const copied = set === "" ? formText(body, `table_${id}`) === "on" : set === "copied";
      chosen[id] = { ...known, copied };
    } else if (!known && isTableCopied(before, id)) chosen[id] = { copied: true };
  }
  return { newTables, tables: chosen };
}

function withFields(before: SourceSelection, table: SourceTable, body: unknown): SourceSelection {
  const known = before.tables[table.id];
  const fields: Record<string, FieldTreatment> = { ...known?.fields };
  const set = formText(body, "set");
  const search = formText(body, "q");
  for (const field of namedLike(table.fields, search)) {
    const possible = treatmentsFor(field, table);
    const asked = set === "" ? formText(body, `field_${field.id}`) : set;
    const treatment = possible.find((one) => one === asked);
    if (treatment === "copied") delete fields[field.id];
    else if (treatment) fields[field.id] = treatment;
  }
  const viewId = formText(body, "view");
  const copied = isTableCopied(before, table.id);
  const chosen: TableSelection = { copied, ...(viewId !== "" && { viewId }), fields };
  return { ...before, tables: { ...before.tables, [table.id]: chosen } };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
