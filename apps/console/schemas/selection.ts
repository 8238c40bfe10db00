/** Schemas of what of a base is copied. */
import { t } from "elysia";
import { named, oneOf, strict } from "./parts";

const id = t.String({ minLength: 1, maxLength: 60 });
/** Tables, and fields of a table. */
const MOST_LISTED = 2000;

const newTables = oneOf(["copy", "ask", "ignore"], {
  meanings: { ask: "Not copied; the console asks, and `unanswered` lists them" },
  description: "What happens to tables that are not listed, such as new ones",
});

const fieldIds = (description: string) => t.Optional(t.Array(id, { maxItems: MOST_LISTED, description }));

const form = t.Object(
  {
    new_tables: newTables,
    tables: t.Array(
      t.Object(
        {
          table_id: id,
          copied: t.Boolean(),
          view_id: t.Optional(
            t.Union([id, t.Null()], {
              description: "Only the records in this view are copied; null: all records",
            }),
          ),
          omitted_fields: fieldIds("Ids of fields that are not copied"),
          hashed_fields: fieldIds("Ids of fields that are copied as a keyed hash"),
        },
        strict,
      ),
      { maxItems: MOST_LISTED },
    ),
  },
  strict,
);

const example = {
  new_tables: "ask",
  tables: [
    {
      table_id: "tblContacts000001",
      copied: true,
      view_id: null,
      omitted_fields: ["fldNotes000000001"],
      hashed_fields: ["fldEmail000000001"],
    },
    { table_id: "tblSalaries000001", copied: false },
  ],
};

/** What is copied, by ids only. */
export const selection = named("Selection", form, example);

/** As a body, whose fields the reference shows with its operation. */
export const selectionChange = named("SelectionChange", form, example);

const selectableTable = named(
  "SelectableTable",
  t.Object({
    table_id: t.String(),
    name: t.String(),
    fields: t.Array(
      t.Object({
        field_id: t.String(),
        name: t.String(),
        type: t.String({ description: "As Airtable calls it" }),
        is_primary: t.Boolean({ description: "It can be hashed, but not omitted" }),
        may_be_hashed: t.Boolean(),
      }),
    ),
    views: t.Array(t.Object({ view_id: t.String(), name: t.String() })),
  }),
);

export const selectableTables = t.Array(selectableTable);

export const selectionAnswer = named(
  "SelectionOfBase",
  t.Object({
    selection,
    unanswered: t.Array(t.Object({ table_id: t.String(), name: t.String() }), {
      description: "New tables in Airtable that wait for a decision, with `new_tables` = `ask`",
    }),
    available: t.Array(selectableTable, { description: "What Airtable has now" }),
  }),
);
