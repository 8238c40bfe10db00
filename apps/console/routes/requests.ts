/** API routes for requests to the operator. */
import { Elysia } from "elysia";
import type { ManagementContext } from "../../../core/control/bases";
import { createRequest, listRequests, type OperatorRequest } from "../../../core/control/placement";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";

export function requestRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/api/v1/requests", tags: ["Requests"] })
    .use(bearerAuth(db))
    .get("", async ({ account }) => (await listRequests(db, { accountId: account.id })).map(toJson), {
      response: { 200: schemas.operatorRequests },
      detail: { summary: "Requests to the operator, open ones first" },
    })
    .post(
      "",
      async ({ account, actor, body, set }) => {
        const { kind, region, message, database_id: databaseId } = body;
        set.status = 201;
        return toJson(await createRequest(db, account.id, { kind, region, message, databaseId }, actor));
      },
      {
        body: schemas.newRequest,
        response: { 201: schemas.operatorRequest },
        detail: {
          summary: "Ask the operator: region, writable database, several bases in one database",
          ...raises("not_found", "already_exists", "conflict"),
        },
      },
    );
}

function toJson(request: OperatorRequest) {
  return {
    id: request.id,
    kind: request.kind,
    database_id: request.databaseId,
    region: request.region,
    message: request.message,
    state: request.state,
    answer: request.answer,
    created_at: request.createdAt.toISOString(),
    decided_at: request.decidedAt?.toISOString() ?? null,
  };
}
