/** API route for what SQL users have written. */
import { Elysia, t } from "elysia";
import { getBase, type ManagementContext } from "../../../core/control/bases";
import { listAllWrites, listWrites } from "../../../core/control/change-sets";
import { listSqlUsers } from "../../../core/control/placement";
import { bearerAuth } from "../bearer-auth";
import { idParams } from "../schemas";
import * as schemas from "../schemas/writes";

const LISTED = 1000;

export function writeRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/api/v1/bases/:id/writes", tags: ["Change sets"] }).use(bearerAuth(db)).get(
    "",
    async ({ account, params, query }) => {
      const base = await getBase(db, params.id, account.id);
      const users = await listSqlUsers(db, base.database.id);
      const nameOf = new Map(users.map(({ role, name }) => [role, name]));
      const { writes, unread } = query.unknown
        ? { writes: await listWrites(ctx, base.id, { isUnknown: true, limit: LISTED }) }
        : await listAllWrites(ctx, base, LISTED);
      if (unread) throw unread;
      return writes.map((one) => ({
        set: one.set,
        at: one.at.toISOString(),
        user: nameOf.get(one.role) ?? one.role,
        application_name: one.applicationName,
        note: one.note,
        table: one.table,
        record: one.recordId,
        operation: one.operation,
        state: one.state,
        error_type: one.errorType,
        error: one.error,
      }));
    },
    {
      params: idParams,
      query: t.Object({
        unknown: t.Optional(
          t.Boolean({ description: "Only those of which it is not known whether Airtable has made them" }),
        ),
      }),
      response: { 200: schemas.writes },
      detail: {
        summary: "What SQL users have written",
        description: "The latest 1,000 rows, the newest first. The cells are not in it.",
      },
    },
  );
}
