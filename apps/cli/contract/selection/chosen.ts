/** The form of `selection` in the file, and of the API: what of a base is copied. */
import { z } from "zod";
import type { ApiSchemas } from "../../client";

export type ApiSelection = ApiSchemas["Selection"];
export type SelectableTable = ApiSchemas["SelectableTable"];

const reference = z.string().min(1);

const chosenTable = z.strictObject({
  copied: z.boolean().optional(),
  view: reference.nullable().optional(),
  omitted: z.array(reference).optional(),
  hashed: z.array(reference).optional(),
});

export type ChosenTable = z.infer<typeof chosenTable>;

/** `true` and `false` are short for `{copied: …}`. */
export const chosenSchema = z.strictObject({
  new_tables: z.enum(["copy", "ask", "ignore"]).optional(),
  tables: z
    .record(
      reference,
      z.preprocess((written) => (typeof written === "boolean" ? { copied: written } : written), chosenTable),
    )
    .optional(),
});

/** By names or ids. */
export type Chosen = z.infer<typeof chosenSchema>;

/** As the file says it, with ids; undefined: everything is copied. */
export function chosenOf(selection: ApiSelection) {
  const { new_tables, tables } = canonical(selection);
  if (new_tables === "copy" && tables.length === 0) return undefined;
  const entries = tables.map(({ table_id, copied, view_id, omitted_fields, hashed_fields }) => {
    const details = {
      ...(view_id === null ? {} : { view: view_id }),
      ...(omitted_fields.length > 0 && { omitted: omitted_fields }),
      ...(hashed_fields.length > 0 && { hashed: hashed_fields }),
    };
    const isPlain = Object.keys(details).length === 0;
    return [table_id, isPlain ? copied : { ...(copied ? {} : { copied }), ...details }] as const;
  });
  return { new_tables, ...(entries.length > 0 && { tables: Object.fromEntries(entries) }) };
}

/** The same for selections with the same effect, now and later. */
export function canonical({ new_tables, tables }: ApiSelection) {
  const entries = tables.map(
    ({ table_id, copied, view_id = null, omitted_fields = [], hashed_fields = [] }) => ({
      ...{ table_id, copied, view_id },
      ...{ omitted_fields: omitted_fields.toSorted(), hashed_fields: hashed_fields.toSorted() },
    }),
  );
  const saysNothing = (one: (typeof entries)[number]) =>
    one.view_id === null &&
    one.omitted_fields.length === 0 &&
    one.hashed_fields.length === 0 &&
    new_tables === (one.copied ? "copy" : "ignore");
  return {
    new_tables,
    tables: entries.filter((one) => !saysNothing(one)).sort((a, b) => (a.table_id < b.table_id ? -1 : 1)),
  };
}

export function isSameSelection(one: ApiSelection, other: ApiSelection): boolean {
  return JSON.stringify(canonical(one)) === JSON.stringify(canonical(other));
}
