/** Request and answer schemas for change sets. */
import { t } from "elysia";
import {
  changeSetStates,
  itemStates,
  MOST_OPERATIONS,
  operationKinds,
} from "../../../core/control/change-sets";
import { named, nullable, strict, timestamp } from "./parts";

const cells = (description: string) => t.Record(t.String({ maxLength: 1000 }), t.Unknown(), { description });

const operation = named(
  "ChangeOperation",
  t.Object(
    {
      operation: t.UnionEnum(operationKinds),
      table: t.String({ minLength: 1, maxLength: 255, description: "Airtable's id or name of the table" }),
      record: t.Optional(t.String({ maxLength: 20, description: "The record's id; not for a create" })),
      fields: t.Optional(
        cells(
          'The cells to write, by the names or ids of their fields, in the form of Airtable\'s API. In a cell of links, `{"created_by": 0}` is the record that the first operation creates',
        ),
      ),
      expected: t.Optional(
        cells("CellValues that the record must still have: if one differs, the operation is refused"),
      ),
    },
    strict,
  ),
);

export const newChangeSet = named(
  "NewChangeSet",
  t.Object(
    {
      operations: t.Array(operation, { minItems: 1, maxItems: MOST_OPERATIONS }),
      note: t.Optional(t.String({ maxLength: 1000, description: "What it is for" })),
      typecast: t.Optional(
        t.Boolean({ description: "Airtable converts texts to the types of their fields, and adds options" }),
      ),
      proposal: t.Optional(t.Boolean({ description: "Nothing is changed until it is approved" })),
    },
    strict,
  ),
  {
    operations: [
      { operation: "update", table: "Tasks", record: "recAAAAAAAAAAAAAA", fields: { Status: "Done" } },
    ],
  },
);

export const changeSet = named(
  "ChangeSet",
  t.Object({
    id: t.String(),
    base_id: t.String(),
    created_by: nullable(t.String({ description: "The member or token" })),
    note: t.String(),
    typecast: t.Boolean(),
    state: t.UnionEnum(changeSetStates),
    undoes: nullable(t.String({ description: "The set whose changes it undoes" })),
    counts: t.Partial(t.Object(Object.fromEntries(itemStates.map((state) => [state, t.Integer()]))), {
      description: "Operations by state",
    }),
    problem: t.String({ description: "Why it cannot continue at the moment; empty if it can" }),
    created_at: timestamp,
    expires_at: nullable(timestamp),
    decided_by: nullable(t.String()),
    decided_at: nullable(timestamp),
    ended_at: nullable(timestamp),
  }),
);

export const changeSets = t.Array(changeSet);

export const changeItems = named(
  "ChangeItems",
  t.Object({
    items: t.Array(
      t.Object({
        position: t.Integer(),
        operation: t.UnionEnum(operationKinds),
        table: t.String(),
        record: nullable(t.String({ description: "Null for a create that has not been made" })),
        fields: nullable(t.Record(t.String(), t.Unknown())),
        expected: nullable(t.Record(t.String(), t.Unknown())),
        state: t.UnionEnum(itemStates),
        error_type: t.String({
          description: "Airtable's type of the error, or STALE, ROW_DOES_NOT_EXIST, …",
        }),
        error: t.String(),
      }),
    ),
    next: nullable(t.Integer({ description: "`from` of the next page; null on the last" })),
  }),
);

export const changeSetParams = t.Object({
  id: t.String({ maxLength: 100, description: "Id of the base: bas_…" }),
  set: t.String({ maxLength: 100, description: "Id of the change set: chs_…" }),
});
