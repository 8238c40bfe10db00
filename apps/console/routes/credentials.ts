/** API route for the SQL connection details of a base's replica. */
import { Elysia } from "elysia";
import { getBase, type ManagementContext } from "../../../core/control/bases";
import { getDatabase, rotateCredentials, showCredentials } from "../../../core/control/placement";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";

export function credentialRoutes(ctx: ManagementContext) {
  const databaseOf = async (baseId: string, accountId: string) => {
    const base = await getBase(ctx.db, baseId, accountId);
    return getDatabase(ctx.db, base.database.id);
  };
  const form = { params: schemas.idParams, response: { 200: schemas.credentials } };
  return new Elysia({ prefix: "/api/v1/bases/:id/credentials", tags: ["Credentials"] })
    .use(bearerAuth(ctx.db))
    .get(
      "",
      async ({ account, actor, params }) =>
        showCredentials({ ...ctx, actor }, await databaseOf(params.id, account.id)),
      {
        ...form,
        detail: { summary: "How to connect with SQL", description: "The audit log records each request." },
      },
    )
    .post(
      "/rotate",
      async ({ account, actor, params }) =>
        rotateCredentials({ ...ctx, actor }, await databaseOf(params.id, account.id)),
      {
        ...form,
        detail: { summary: "Set a new password. The old password no longer works", ...raises("conflict") },
      },
    );
}
