/** API routes for workspaces: the caps on their bases' calls, the usage, and the forecast for the month. */
import { Elysia } from "elysia";
import type { ManagementContext } from "../../../core/control/bases";
import {
  createWorkspace,
  deleteWorkspace,
  getWorkspace,
  listWorkspaces,
  toWorkspaceJson,
  updateWorkspace,
  type Workspace,
  withBudgets,
} from "../../../core/control/budgets";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";

export function workspaceRoutes(ctx: ManagementContext) {
  const { db } = ctx;

  async function toJson(workspaces: Workspace[]) {
    return (await withBudgets(db, workspaces)).map(({ workspace, budget }) =>
      toWorkspaceJson(workspace, budget),
    );
  }

  async function oneJson(workspace: Workspace) {
    const [json] = await toJson([workspace]);
    // Throws not_found if it no longer exists.
    return json ?? toJson([await getWorkspace(db, workspace.id)]).then(([again]) => again!);
  }

  return new Elysia({ prefix: "/api/v1/workspaces", tags: ["Workspaces"] })
    .use(bearerAuth(db))
    .get("", async ({ account }) => toJson(await listWorkspaces(db, account.id)), {
      response: { 200: schemas.workspaces },
      detail: { summary: "The account's workspaces and their usage this month" },
    })
    .post(
      "",
      async ({ account, actor, body, set }) => {
        const workspace = await createWorkspace({ ...ctx, actor }, account.id, {
          name: body.name,
          plan: body.plan,
          callsPerMonth: body.calls_per_month,
          reserve: body.reserve,
        });
        set.status = 201;
        return oneJson(workspace);
      },
      {
        body: schemas.newWorkspace,
        response: { 201: schemas.workspace },
        detail: {
          summary: "Create a workspace",
          description: "To assign a base to the workspace, set the base's `workspace_id`.",
          ...raises("already_exists"),
        },
      },
    )
    .get("/:id", async ({ account, params }) => oneJson(await getWorkspace(db, params.id, account.id)), {
      params: schemas.workspaceParams,
      response: { 200: schemas.workspace },
      detail: { summary: "One workspace" },
    })
    .patch(
      "/:id",
      async ({ account, actor, body, params }) => {
        const workspace = await getWorkspace(db, params.id, account.id);
        const { calls_per_month: callsPerMonth, ...changes } = body;
        return oneJson(await updateWorkspace({ ...ctx, actor }, workspace, { ...changes, callsPerMonth }));
      },
      {
        params: schemas.workspaceParams,
        body: schemas.workspaceChange,
        response: { 200: schemas.workspace },
        detail: {
          summary: "Change its name, plan, calls or reserve",
          description: "Omitted fields stay unchanged. A new plan sets its calls and a reserve of a fifth.",
          ...raises("already_exists"),
        },
      },
    )
    .delete(
      "/:id",
      async ({ account, actor, params }) => {
        await deleteWorkspace({ ...ctx, actor }, await getWorkspace(db, params.id, account.id));
        return new Response(null, { status: 204 });
      },
      {
        params: schemas.workspaceParams,
        detail: {
          summary: "Delete a workspace",
          description: "Rejected (409) while it has bases, which would then have no cap.",
          ...raises("conflict"),
          responses: { 204: { description: "Deleted" } },
        },
      },
    );
}
