/** API routes for connected bases: list, connect, read, change, sync now, runs, delete. */
import { Elysia } from "elysia";
import {
  createBase,
  deleteBase,
  getBase,
  listBases,
  type ManagementContext,
  requestResync,
  resolveIndexes,
  resolveMutedFields,
  resolveOwnNames,
  revokeAttachmentLinks,
  selectionFromJson,
  settingsFromJson,
  updateSettings,
} from "../../../core/control/bases";
import { baseJson, baseJsons } from "../../../core/control/status";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";

export function baseRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/api/v1/bases", tags: ["Bases"] })
    .use(bearerAuth(db))
    .get("", async ({ account }) => baseJsons(db, await listBases(db, account.id)), {
      response: { 200: schemas.bases },
      detail: { summary: "The account's bases" },
    })
    .post(
      "",
      async ({ account, actor, body, set }) => {
        const base = await createBase({ ...ctx, actor }, account.id, {
          platform: body.platform,
          apiKey: body.api_key,
          sourceBaseId: body.base_id,
          destination: body.destination,
          settings: body.settings && settingsFromJson(body.settings),
          selection: body.selection && selectionFromJson(body.selection),
          workspaceId: body.workspace_id,
        });
        set.status = 201;
        return baseJson(db, base);
      },
      {
        body: schemas.newBase,
        response: { 201: schemas.base },
        detail: {
          summary: "Connect a base and start syncing",
          ...raises(
            "not_found",
            "already_exists",
            "destination_invalid",
            "source_key_refused",
            "source_forbidden",
            "source_not_found",
          ),
        },
      },
    )
    .get("/:id", async ({ account, params }) => baseJson(db, await getBase(db, params.id, account.id)), {
      params: schemas.idParams,
      response: { 200: schemas.base },
      detail: { summary: "One base" },
    })
    .patch(
      "/:id",
      async ({ account, actor, body, params }) => {
        const base = await getBase(db, params.id, account.id);
        const changed = await updateSettings({ ...ctx, actor }, base, {
          ...settingsFromJson(body),
          indexes: body.indexes && (await resolveIndexes(ctx, base, body.indexes)),
          ownNames: body.own_names && (await resolveOwnNames(ctx, base, body.own_names)),
          mutedFields: body.muted_fields && (await resolveMutedFields(ctx, base, body.muted_fields)),
          apiKey: body.api_key,
          workspaceId: body.workspace_id,
        });
        return baseJson(db, changed);
      },
      {
        params: schemas.idParams,
        body: schemas.settingsChange,
        response: { 200: schemas.base },
        detail: {
          summary: "Change settings, the workspace, or the API key",
          description: "Omitted fields stay unchanged.",
          ...raises("conflict", "source_key_refused", "source_forbidden", "source_not_found"),
        },
      },
    )
    .delete(
      "/:id",
      async ({ account, actor, params }) => {
        await deleteBase({ ...ctx, actor }, await getBase(db, params.id, account.id));
        return new Response(null, { status: 204 });
      },
      {
        params: schemas.idParams,
        detail: {
          summary: "Delete a base and its synced data",
          description: "Data in a database that you host stays there.",
          ...raises("conflict"),
          responses: { 204: { description: "Deleted" } },
        },
      },
    )
    .post(
      "/:id/sync",
      async ({ account, actor, params, set }) => {
        const base = await requestResync({ ...ctx, actor }, await getBase(db, params.id, account.id));
        set.status = 202;
        return baseJson(db, base);
      },
      {
        params: schemas.idParams,
        response: { 202: schemas.base },
        detail: { summary: "Resync a base", ...raises("conflict") },
      },
    )
    .post(
      "/:id/attachment-links/revoke",
      async ({ account, actor, params, set }) => {
        const base = await revokeAttachmentLinks({ ...ctx, actor }, await getBase(db, params.id, account.id));
        set.status = 202;
        return baseJson(db, base);
      },
      {
        params: schemas.idParams,
        response: { 202: schemas.base },
        detail: {
          summary: "Revoke all attachment links",
          description: "Existing links stop working immediately; a sync writes new ones to the rows.",
          ...raises("conflict"),
        },
      },
    );
}
