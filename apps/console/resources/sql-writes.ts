/** What SQL users have written to a base. */
import { t } from "elysia";
import { itemStates, listAllWrites, listWrites, operationKinds } from "../../../core/control/change-sets";
import { listSqlUsers } from "../../../core/control/placement";
import { ofBase, resource } from "../resource-kit/resource";
import { idParams } from "../schemas";
import { named, nullable, oneOf, timestamp } from "../schemas/parts";

const LISTED = 1000;

export const sqlWritesResource = resource({ tag: "Change sets", params: idParams, scope: ofBase }).all({
  api: "GET /api/v1/bases/:id/writes",
  summary: "What SQL users have written",
  description: "The latest 1,000 rows, the newest first. The cells are not in it.",
  query: t.Object({
    unknown: t.Optional(
      t.Boolean({ description: "Only those of which it is not known whether Airtable has made them" }),
    ),
  }),
  answer: t.Array(
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
        operation: oneOf(operationKinds),
        state: oneOf(["queued", ...itemStates], {
          description:
            "`queued`: committed in the database, and not taken from there yet. `sent`: whether Airtable has made it is being found out. `unknown`: it cannot be found out",
        }),
        error_type: t.String({ description: "Airtable's" }),
        error: t.String(),
      }),
    ),
  ),
  async run(ctx, base, { unknown: isUnknown }) {
    const users = await listSqlUsers(ctx.db, base.database.id);
    const nameOf = new Map(users.map(({ role, name }) => [role, name]));
    const { writes, unread } = isUnknown
      ? { writes: await listWrites(ctx, base.id, { isUnknown, limit: LISTED }) }
      : await listAllWrites(ctx, base, LISTED);
    if (unread) throw unread;
    return writes.map((one) => ({ ...one, user: nameOf.get(one.role) ?? one.role, record: one.recordId }));
  },
});
