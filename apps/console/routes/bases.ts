/** Connected bases: list, connect, look at, change, sync now, runs, delete. */
import { Elysia } from "elysia";
import {
  createBase,
  deleteBase,
  getBase,
  listBases,
  listRuns,
  type ManagementContext,
  requestResync,
  type SyncRun,
  toBaseJson,
  updateSettings,
} from "../../../core/control";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";

const DEFAULT_RUNS = 50;

export function baseRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/api/v1/bases", tags: ["Bases"] })
    .use(bearerAuth(db))
    .get(
      "",
      async ({ account }) => (await listBases(db, account.id)).map((base) => toBaseJson(base, new Date())),
      { response: { 200: schemas.bases }, detail: { summary: "The account's bases" } },
    )
    .post(
      "",
      async ({ account, body, set }) => {
        const base = await createBase(ctx, account.id, {
          platform: body.platform,
          apiKey: body.api_key,
          sourceBaseId: body.base_id,
          destination: body.destination,
          settings: body.settings && toSettings(body.settings),
        });
        set.status = 201;
        return toBaseJson(base, new Date());
      },
      {
        body: schemas.newBase,
        response: { 201: schemas.base },
        detail: { summary: "Connect a base and start syncing" },
      },
    )
    .get(
      "/:id",
      async ({ account, params }) => toBaseJson(await getBase(db, params.id, account.id), new Date()),
      { params: schemas.idParams, response: { 200: schemas.base }, detail: { summary: "One base" } },
    )
    .patch(
      "/:id",
      async ({ account, body, params }) => {
        const base = await getBase(db, params.id, account.id);
        const changed = await updateSettings(ctx, base, { ...toSettings(body), apiKey: body.api_key });
        return toBaseJson(changed, new Date());
      },
      {
        params: schemas.idParams,
        body: schemas.settingsChange,
        response: { 200: schemas.base },
        detail: { summary: "Change settings, or the API key", description: "What is not given stays." },
      },
    )
    .delete(
      "/:id",
      async ({ account, params }) => {
        await deleteBase(ctx, await getBase(db, params.id, account.id));
        return new Response(null, { status: 204 });
      },
      {
        params: schemas.idParams,
        detail: {
          summary: "Delete a base and its replica",
          description: "A copy in a database that you host stays there.",
          responses: { 204: { description: "Deleted" } },
        },
      },
    )
    .post(
      "/:id/sync",
      async ({ account, params, set }) => {
        const base = await requestResync(ctx, await getBase(db, params.id, account.id));
        set.status = 202;
        return toBaseJson(base, new Date());
      },
      { params: schemas.idParams, response: { 202: schemas.base }, detail: { summary: "Sync now" } },
    )
    .get(
      "/:id/runs",
      async ({ account, params, query }) => {
        const base = await getBase(db, params.id, account.id);
        return (await listRuns(db, base.id, query.limit ?? DEFAULT_RUNS)).map(toRunJson);
      },
      {
        params: schemas.idParams,
        query: schemas.runsQuery,
        response: { 200: schemas.runs },
        detail: { summary: "The latest syncs, the newest first" },
      },
    );
}

function toSettings(body: Omit<typeof schemas.settingsChange.static, "api_key">) {
  return {
    turbo: body.turbo,
    rapid: body.rapid,
    linkedRecordsAsText: body.linked_records_as_text,
    lookupsAsText: body.lookups_as_text,
    paused: body.paused,
  };
}

function toRunJson(run: SyncRun) {
  const { error_code, error_message, started_at, completed_at, ...facts } = run;
  return {
    ...facts,
    started_at: started_at.toISOString(),
    completed_at: completed_at?.toISOString() ?? null,
    error: error_code === null ? null : { code: error_code, message: error_message ?? "" },
  };
}
