/** What a change of a selection does, table by table. */
import type { ApiSelection, SelectableTable } from "./chosen";

type Entry = ApiSelection["tables"][number];

interface SelectionEffect {
  /** Undefined: the rule for new tables. */
  tableId: string | undefined;
  /** `Contacts.Notes: copied -> omitted` */
  detail: string;
  /** Rows are read again, or something is dropped. */
  isGrave: boolean;
}

export function effectsOf(
  before: ApiSelection,
  after: ApiSelection,
  available: readonly SelectableTable[],
): SelectionEffect[] {
  const rule =
    before.new_tables === after.new_tables ? [] : [`new_tables: ${before.new_tables} -> ${after.new_tables}`];
  return [
    ...rule.map((detail) => ({ tableId: undefined, detail, isGrave: false })),
    ...available.flatMap((table) => {
      const [was, is] = [stateOf(before, table), stateOf(after, table)];
      const effect = (detail: string, isGrave: boolean) => ({ tableId: table.table_id, detail, isGrave });
      if (was.text !== is.text)
        return [effect(`${table.name}: ${was.text} -> ${is.text}`, was.isCopied && !is.isCopied)];
      return partsOf(table, was.entry, is.entry).map((detail) => effect(detail, is.isCopied));
    }),
  ];
}

function stateOf({ new_tables, tables }: ApiSelection, { table_id }: SelectableTable) {
  const entry = tables.find((one) => one.table_id === table_id);
  const isCopied = entry?.copied ?? new_tables === "copy";
  const isOpen = !entry && new_tables === "ask";
  return { entry, isCopied, text: isCopied ? "copied" : isOpen ? "undecided" : "not copied" };
}

function partsOf({ name, fields, views }: SelectableTable, was?: Entry, is?: Entry): string[] {
  const viewName = (id: string | null | undefined) =>
    id ? (views.find(({ view_id }) => view_id === id)?.name ?? id) : "all records";
  const [viewBefore, viewAfter] = [was?.view_id ?? null, is?.view_id ?? null];
  const changed = fields.flatMap(({ field_id, name: field }) => {
    const [before, after] = [treatment(was, field_id), treatment(is, field_id)];
    return before === after ? [] : [`${name}.${field}: ${before} -> ${after}`];
  });
  return [
    ...(viewBefore === viewAfter ? [] : [`${name}: ${viewName(viewBefore)} -> ${viewName(viewAfter)}`]),
    ...changed,
  ];
}

function treatment(entry: Entry | undefined, fieldId: string): string {
  if (entry?.omitted_fields?.includes(fieldId)) return "omitted";
  return entry?.hashed_fields?.includes(fieldId) ? "hashed" : "copied";
}
