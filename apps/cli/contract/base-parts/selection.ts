/** `selection`: which tables, records and fields are copied, and which fields as hashes only. */
import type { ApiSchemas } from "../../client";
import { type Chosen, chosenOf, chosenSchema, isSameSelection } from "../selection/chosen";
import { effectsOf } from "../selection/effects";
import { resolveChosen } from "../selection/resolve";
import type { AccountState } from "../state";
import type { BasePart } from "./part";

const EVERYTHING: ApiSchemas["Selection"] = { new_tables: "copy", tables: [] };

export const selectionPart: BasePart<Chosen> = {
  key: "selection",
  schema: chosenSchema,
  read: (base) => chosenOf(existingOf(base)),
  // Names of tables and fields stay, although `pull` writes ids.
  isOwn(written, base, state) {
    const parsed = chosenSchema.safeParse(written);
    return parsed.success && isSame(parsed.data, base, state);
  },
  needsTables: (wanted, base) => !isSame(wanted, base),
  compare(wanted, base, { path, state, problem }) {
    if (isSame(wanted, base)) return undefined;
    const available = state.available.get(base.id) ?? [];
    const existing = existingOf(base);
    const selection = resolveChosen(wanted, available, path, problem);
    if (isSameSelection(existing, selection)) return undefined;
    const effects = effectsOf(existing, selection, available);
    const written = Object.keys(wanted.tables ?? {});
    const paths = effects.flatMap(({ tableId }) => {
      const index = selection.tables.findIndex(({ table_id }) => table_id === tableId);
      return index < 0 ? [] : [[...path, "tables", written[index]!]];
    });
    return {
      details: effects.map(({ detail }) => `selection.${detail}`),
      paths: paths.length > 0 ? paths : [path],
      change: { selection },
      isRebuilding: effects.some(({ isGrave }) => isGrave),
    };
  },
  connect: (wanted) => ({ chosen: wanted }),
};

function existingOf({ selection = EVERYTHING }: Partial<ApiSchemas["Base"]>): ApiSchemas["Selection"] {
  return selection;
}

/** @param state to find what is written as names; without it, names are not the same as ids */
function isSame(wanted: Chosen, base: ApiSchemas["Base"], state?: AccountState): boolean {
  const available = state?.available.get(base.id);
  const problems: string[] = [];
  const selection = resolveChosen(wanted, available, [], (_, message) => problems.push(message));
  const existing = existingOf(base);
  const known = new Set([
    ...existing.tables.map(({ table_id }) => table_id),
    ...base.tables.map(({ source_id }) => source_id),
  ]);
  const isKnown = available !== undefined || selection.tables.every(({ table_id }) => known.has(table_id));
  return problems.length === 0 && isKnown && isSameSelection(existing, selection);
}
