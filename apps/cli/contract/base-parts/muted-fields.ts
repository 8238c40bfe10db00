/** `muted_fields`: a list of fields (`tbl….fld…`), by Airtable's ids, whose issues do not count. */
import { z } from "zod";
import type { ApiSchemas } from "../../client";
import { shown } from "../difference";
import type { BasePart } from "./part";

const schema = z.array(z.string().regex(/^[^.\s]+\.[^.\s]+$/, "is not a field: write tbl….fld…"));

export const mutedFieldsPart: BasePart<z.infer<typeof schema>> = {
  key: "muted_fields",
  schema,
  read(base) {
    const existing = existingOf(base);
    return existing.length > 0 ? existing : undefined;
  },
  compare(wanted, base, { path }) {
    const existing = existingOf(base);
    const sorted = [...new Set(wanted)].sort();
    if (base.tables.length === 0 || shown(sorted) === shown(existing)) return undefined;
    return {
      details: [`muted_fields: ${shown(existing)} -> ${shown(sorted)}`],
      paths: [path],
      change: {
        muted_fields: sorted.map((field) => {
          const [table_id = "", field_id = ""] = field.split(".");
          return { table_id, field_id };
        }),
      },
    };
  },
  // Those of a new base wait for its tables: the first `apply` after the first sync sets them.
  isOwn: (_, { tables }) => tables.length === 0,
  connect: () => ({}),
};

function existingOf({ settings }: ApiSchemas["Base"]): string[] {
  // An older service does not have them.
  const found = settings.muted_fields ?? [];
  return found.map(({ table_id, field_id }) => `${table_id}.${field_id}`).sort();
}
