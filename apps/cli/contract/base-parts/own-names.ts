/** `own_names`: names of tables (`tbl…`) and columns (`tbl….fld…`) in SQL that people have chosen, by Airtable's ids. */
import { z } from "zod";
import type { ApiSchemas } from "../../client";
import { shown } from "../difference";
import type { BasePart, PartContext } from "./part";

const schema = z.record(
  z.string().regex(/^[^.\s]+(\.[^.\s]+)?$/, "is not an id: write tbl… or tbl….fld…"),
  z.string().min(1).max(63),
);

type OwnNames = z.infer<typeof schema>;

export const ownNamesPart: BasePart<OwnNames> = {
  key: "own_names",
  schema,
  read(base) {
    const existing = existingOf(base);
    return Object.keys(existing).length > 0 ? existing : undefined;
  },
  // Those of a new base wait for its tables: the first `apply` after the first sync sets them.
  isOwn: (_, { tables }) => tables.length === 0,
  compare(wanted, base, context) {
    checkUnique(wanted, context);
    const existing = existingOf(base);
    const ids = [...new Set([...Object.keys(existing), ...Object.keys(wanted)])].sort();
    const changed = ids.filter((id) => existing[id] !== wanted[id]);
    if (base.tables.length === 0 || changed.length === 0) return undefined;
    for (const id of Object.keys(wanted)) checkTable(id, base, context);
    return {
      details: changed.map((id) => `own_names.${id}: ${shown(existing[id])} -> ${shown(wanted[id])}`),
      paths: changed.map((id) => [...context.path, id]),
      change: {
        own_names: Object.entries(wanted).map(([id, name]) => {
          const [table_id = "", field_id = null] = id.split(".");
          return { table_id, field_id, name };
        }),
      },
    };
  },
  connect(wanted, context) {
    checkUnique(wanted, context);
    return {};
  },
};

function existingOf({ settings }: ApiSchemas["Base"]): OwnNames {
  // An older service does not have them.
  const entries = (settings.own_names ?? []).map(({ table_id, field_id, name }): [string, string] => [
    field_id === null ? table_id : `${table_id}.${field_id}`,
    name,
  ]);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Two tables, or two columns of a table, cannot have one name. */
function checkUnique(wanted: OwnNames, { path, problem }: PartContext): void {
  const taken = new Map<string, string>();
  for (const [id, name] of Object.entries(wanted)) {
    const place = `${id.includes(".") ? id.split(".")[0] : ""} ${name}`;
    const other = taken.get(place);
    if (other) problem([...path, id], `${name} is already the name of ${other}. Choose another one`);
    taken.set(place, id);
  }
}

function checkTable(id: string, { tables }: ApiSchemas["Base"], { path, problem }: PartContext): void {
  const ids = tables.map(({ source_id }) => source_id);
  const [table] = id.split(".") as [string];
  if (ids.includes(table)) return;
  problem(
    [...path, id],
    `there is no table ${table} in the base. Correct the id; the base has ${ids.join(", ")}`,
  );
}
