/** Finds the tables, fields and views that the file names, by name or id, and reports what cannot be done. */
import type { Path } from "../parse";
import type { ApiSelection, Chosen, ChosenTable, SelectableTable } from "./chosen";

/** Names in a message. */
const MOST_NAMES = 20;

type Report = (path: Path, message: string) => void;
type ResolvedTable = ApiSelection["tables"][number];

/** @param available undefined: what the file names is taken for ids */
export function resolveChosen(
  { new_tables = "copy", tables = {} }: Chosen,
  available: readonly SelectableTable[] | undefined,
  path: Path,
  problem: Report,
): ApiSelection {
  const resolved = new Map<string, ResolvedTable>();
  for (const [written, chosen] of Object.entries(tables)) {
    const at = [...path, "tables", written];
    const table = available ? find(available, written, "table_id") : undefined;
    if (available && !table) {
      problem(at, `there is no table ${written} in the base. Correct it, or remove it; ${listed(available)}`);
      continue;
    }
    const id = table?.table_id ?? written;
    if (resolved.has(id)) problem(at, `${written} is a table that is listed before. Remove one of them`);
    resolved.set(id, resolveTable(id, chosen, table, at, problem));
  }
  const selection = { new_tables, tables: [...resolved.values()] };
  const isCopied = ({ table_id }: SelectableTable) => resolved.get(table_id)?.copied ?? new_tables === "copy";
  if (available && resolved.size === Object.keys(tables).length && !available.some(isCopied))
    problem(path, "no table would be copied. Choose at least one, or pause the base");
  return selection;
}

function resolveTable(
  table_id: string,
  { copied = true, view = null, omitted = [], hashed = [] }: ChosenTable,
  table: SelectableTable | undefined,
  path: Path,
  problem: Report,
): ResolvedTable {
  const known = new Set<string>();
  const fields = (key: "omitted" | "hashed", names: readonly string[]) =>
    names.map((written, index) => {
      const at = [...path, key, index];
      const field = table && find(table.fields, written, "field_id");
      const named = `the field ${written} of ${table?.name}`;
      if (table && !field)
        problem(
          at,
          `there is no field ${written} in ${table.name}. Correct it, or remove it; ${listed(table.fields)}`,
        );
      if (field?.is_primary && key === "omitted")
        problem(
          at,
          `${named} is the primary field, which identifies records. Hash it, or remove it from the list`,
        );
      if (field && !field.may_be_hashed && key === "hashed")
        problem(
          at,
          `${named} has the type ${field.type}, which cannot be hashed. Omit it, or remove it from the list`,
        );
      const id = field?.field_id ?? written;
      if (known.has(id)) problem(at, `${named} is listed twice. Omit it or hash it`);
      known.add(id);
      return id;
    });
  const found = view !== null && table ? find(table.views, view, "view_id") : undefined;
  if (view !== null && table && !found)
    problem(
      [...path, "view"],
      `there is no view ${view} in ${table.name}. Correct it, or remove the line to copy all records; ${listed(table.views)}`,
    );
  return {
    table_id,
    copied,
    view_id: found?.view_id ?? view,
    omitted_fields: fields("omitted", omitted),
    hashed_fields: fields("hashed", hashed),
  };
}

/** An id comes first: a name may look like one. */
function find<Key extends string, One extends { name: string } & Record<Key, string>>(
  all: readonly One[],
  written: string,
  idKey: Key,
): One | undefined {
  return all.find((one) => one[idKey] === written) ?? all.find(({ name }) => name === written);
}

function listed(all: readonly { name: string }[]): string {
  const names = all.map(({ name }) => name).toSorted();
  const more = names.length > MOST_NAMES ? `, and ${names.length - MOST_NAMES} more` : "";
  return names.length === 0 ? "it has none" : `it has ${names.slice(0, MOST_NAMES).join(", ")}${more}`;
}
