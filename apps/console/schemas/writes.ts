/** Answer schemas of the API for SQL writes. */
import { t } from "elysia";
import { itemStates, operationKinds } from "../../../core/control/change-sets";
import { named, nullable, timestamp } from "./parts";

export const writes = t.Array(
  named(
    "SqlWrite",
    t.Object({
      set: t.String({ description: "Id of the change set of the transaction" }),
      at: timestamp,
      user: t.String({ description: "Name of the SQL user, or its role if it is no longer one" }),
      application_name: t.String(),
      note: t.String({ description: "`basetide.note` of the session" }),
      table: t.String({ description: "Airtable's id" }),
      record: nullable(t.String({ description: "Null for a record that was not created" })),
      operation: t.UnionEnum(operationKinds),
      state: t.UnionEnum(["queued", ...itemStates], {
        description:
          "`queued`: committed in the database, and not taken from there yet. `sent`: whether Airtable has made it is being found out. `unknown`: it cannot be found out",
      }),
      error_type: t.String({ description: "Airtable's" }),
      error: t.String(),
    }),
  ),
);
