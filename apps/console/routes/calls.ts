/** API route for the calls to Airtable for a base, by kind and by key. */
import { Elysia } from "elysia";
import { getBase, type ManagementContext } from "../../../core/control/bases";
import { callsOver } from "../../../core/control/history";
import { serverNow } from "../../../core/postgres";
import { bearerAuth } from "../bearer-auth";
import { idParams } from "../schemas";
import { baseCalls, callsQuery } from "../schemas/calls";

export function callRoutes({ db }: Pick<ManagementContext, "db">) {
  return new Elysia({ prefix: "/api/v1/bases", tags: ["Bases"] }).use(bearerAuth(db)).get(
    "/:id/calls",
    async ({ account, params, query }) => {
      const base = await getBase(db, params.id, account.id);
      const per = query.per ?? "hour";
      const { buckets, callers } = await callsOver(db, base, per, serverNow(base));
      return {
        per,
        buckets: buckets.map(({ at, sync, client, console }) => ({
          from: at.toISOString(),
          sync,
          client,
          console,
        })),
        clients: callers.map(({ kind, name, calls }) => ({ kind, key: name === "" ? null : name, calls })),
      };
    },
    {
      params: idParams,
      query: callsQuery,
      response: { 200: baseCalls },
      detail: {
        summary: "Calls to Airtable by sync, clients and console",
        description:
          "The last 24 hours, or the last 30 days (UTC), up to 10 seconds behind. Clients are listed by the first letters of their API keys, the ten with the most calls a day; `others` are all the rest. If several accounts have connected the base, keys are not listed.",
      },
    },
  );
}
