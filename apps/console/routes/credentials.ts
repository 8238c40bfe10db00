/** API route for the SQL connection details of a base's replica. */
import { Elysia } from "elysia";
import { getBase, type ManagementContext } from "../../../core/control/bases";
import {
  getDatabase,
  removeReadingUrl,
  rotateCredentials,
  setReadingUrl,
  showCredentials,
} from "../../../core/control/placement";
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
    )
    .put(
      "/reading-url",
      async ({ account, actor, params, body }) => {
        await setReadingUrl({ ...ctx, actor }, await databaseOf(params.id, account.id), body.url);
        return new Response(null, { status: 204 });
      },
      {
        params: schemas.idParams,
        body: schemas.readingUrl,
        detail: {
          summary: "Set the URL with which members read a database that you host",
          description:
            "Its role must be able to read the bases and to change nothing. The SQL editor, the data browser and downloads use it; without it, viewers cannot.",
          responses: { 204: { description: "Stored" } },
          ...raises("conflict", "destination_invalid"),
        },
      },
    )
    .delete(
      "/reading-url",
      async ({ account, actor, params }) => {
        await removeReadingUrl({ ...ctx, actor }, await databaseOf(params.id, account.id));
        return new Response(null, { status: 204 });
      },
      {
        params: schemas.idParams,
        detail: {
          summary: "Remove the reading URL",
          responses: { 204: { description: "Removed" } },
          ...raises("conflict"),
        },
      },
    );
}
