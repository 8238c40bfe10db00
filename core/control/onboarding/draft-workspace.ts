/** The workspace that is created with a base, so that the base's calls are capped from the first one. */
import type { Context } from "../../context";
import { isBasetideError } from "../../errors";
import {
  createWorkspace,
  deleteWorkspace,
  listWorkspaces,
  type Plan,
  sourcePlans,
  type Workspace,
} from "../budgets";

/** The name of a workspace that is created with a base. */
function workspaceName(plan: Plan): string {
  const sold = sourcePlans.find(({ id }) => id === plan);
  return sold ? `${sold.name} workspace` : "Workspace";
}

/** The cap on the base's calls: none, that of an existing workspace, or that of a new one. */
export type DraftBudget =
  | { kind: "none" }
  | { kind: "existing"; workspaceId: string }
  | { kind: "new"; plan: Plan; callsPerMonth?: number | undefined };

/** Returns the workspace for a new base; if it was created for the base and has none in the end, it is deleted. */
export async function draftWorkspace(
  ctx: Pick<Context, "db" | "log" | "actor">,
  accountId: string,
  budget: DraftBudget,
): Promise<{ id: string | null } & AsyncDisposable> {
  if (budget.kind !== "new") {
    const id = budget.kind === "existing" ? budget.workspaceId : null;
    return { id, [Symbol.asyncDispose]: async () => {} };
  }
  const made = await createNamedWorkspace(ctx, accountId, budget);
  return {
    id: made.id,
    async [Symbol.asyncDispose]() {
      await deleteWorkspace(ctx, made).catch((error: unknown) => {
        // `conflict`: the base is in it, as it should be.
        if (!isBasetideError(error, "conflict"))
          ctx.log.warn({ error }, "deleting an unused workspace failed");
      });
    },
  };
}

/** Named after its plan, with a number if the account has that name already; users may rename it. */
async function createNamedWorkspace(
  ctx: Pick<Context, "db" | "actor">,
  accountId: string,
  { plan, callsPerMonth }: Extract<DraftBudget, { kind: "new" }>,
): Promise<Workspace> {
  const taken = new Set((await listWorkspaces(ctx.db, accountId)).map(({ name }) => name));
  const plain = workspaceName(plan);
  for (let number = 1; ; number++) {
    const name = number === 1 ? plain : `${plain} ${number}`;
    if (taken.has(name)) continue;
    try {
      return await createWorkspace(ctx, accountId, { name, plan, callsPerMonth });
    } catch (error) {
      if (!isBasetideError(error, "already_exists")) throw error;
    }
  }
}
