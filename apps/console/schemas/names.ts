/** Schemas of the names of a base's tables and columns in SQL. */
import { t } from "elysia";
import { named, nullable, oneOf, timestamp } from "./parts";

const name = {
  source_name: t.String({ description: "Name in Airtable" }),
  name: t.String({ description: "Name in SQL" }),
  is_own: t.Boolean({ description: "Chosen with own_names" }),
};

export const nameList = named(
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

const oldNameParts = {
  table_id: t.String(),
  field_id: nullable(t.String({ description: "null: it is the old name of the table" })),
  name: t.String({ description: "The old name" }),
  table: t.String({ description: "The table's current name" }),
  column: nullable(t.String({ description: "The column's current name" })),
  renamed_at: timestamp,
  expires_at: timestamp,
};

const oldName = named("OldName", t.Object(oldNameParts));
const lostName = named(
  "LostName",
  t.Object({ ...oldNameParts, reason: t.String({ description: "Why the old name does not work" }) }),
);

export const oldNameList = named(
  "OldNames",
  t.Object({
    old_names: t.Array(oldName),
    lost_names: t.Array(lostName),
    uses: t.Array(
      t.Object({
        kind: oneOf(["saved query", "view", "function", "trigger", "statement"]),
        name: t.String({ description: "Empty for a statement" }),
        text: t.String({ description: "The beginning of its SQL" }),
        calls: nullable(t.Integer({ description: "Of a statement, since the statistics were reset" })),
        old_names: t.Array(
          t.Object({ table_id: t.String(), field_id: nullable(t.String()), name: t.String() }),
        ),
      }),
    ),
    knows_statements: t.Boolean({
      description:
        "The server has pg_stat_statements, and Basetide may read it: all statements that use old names are listed",
    }),
  }),
);
