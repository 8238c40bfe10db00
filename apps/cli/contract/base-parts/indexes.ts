/** `indexes`: a list of `table.column`, with ` trigram` for searches within texts. */
import { z } from "zod";
import type { ApiSchemas } from "../../client";
import { shown } from "../difference";
import type { BasePart } from "./part";

const FORM = /^([^.\s]+)\.([^.\s]+)( trigram)?$/;

const schema = z.array(
  z.string().regex(FORM, "is not an index: write table.column, or table.column trigram, with names in SQL"),
);

export const indexesPart: BasePart<z.infer<typeof schema>> = {
  key: "indexes",
  schema,
  read(base) {
    const existing = existingOf(base);
    return existing.length > 0 ? existing : undefined;
  },
  compare(wanted, base, { path, problem }) {
    if (base.tables.length === 0) return undefined;
    const existing = existingOf(base);
    if (shown(wanted) === shown(existing)) return undefined;
    const tables = base.tables.map(({ name }) => name);
    const asked = wanted.map((text, nth) => {
      const [, table = "", column = "", trigram] = FORM.exec(text)!;
      if (!tables.includes(table)) {
        const known = tables.toSorted().slice(0, 20).join(", ");
        problem([...path, nth], `there is no table ${table}. Correct the name; the base has ${known}`);
      }
      return { table, column, kind: trigram ? ("trigram" as const) : ("default" as const) };
    });
    return {
      details: [`indexes: ${shown(existing)} -> ${shown(wanted)}`],
      paths: [path],
      change: { indexes: asked },
    };
  },
  // Those of a new base wait for its tables: the first `apply` after the first sync creates them.
  isOwn: (_, { tables }) => tables.length === 0,
  connect: () => ({}),
};

function existingOf({ settings }: ApiSchemas["Base"]): string[] {
  // An older service does not list them.
  const found = settings.indexes ?? [];
  return found
    .map(({ table, column, kind }) => `${table}.${column}${kind === "trigram" ? " trigram" : ""}`)
    .sort();
}
