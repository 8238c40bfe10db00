/** Schemas of the names of a base's tables and columns in SQL. */
import { t } from "elysia";
import { named } from "./parts";

const name = {
  source_name: t.String({ description: "Name in Airtable" }),
  name: t.String({ description: "Name in SQL" }),
  is_own: t.Boolean({ description: "Chosen with own_names" }),
};

export const names = named(
  "Names",
  t.Object({
    tables: t.Array(
      t.Object({
        table_id: t.String(),
        ...name,
        columns: t.Array(t.Object({ field_id: t.String(), ...name })),
      }),
    ),
  }),
);
