/** The workspace that a base is made with: its calls are capped from the first one on. */
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

/** What a workspace is called that a base is made with. */
function workspaceName(plan: Plan): string {
  const sold = sourcePlans.find(({ id }) => id === plan);
  return sold ? `${sold.name} workspace` : "Workspace";
}

/** What caps the base's calls: nothing, a workspace that is there, or one to be made with it. */
export type DraftBudget =
  | { kind: "none" }
  | { kind: "existing"; workspaceId: string }
  | { kind: "new"; plan: Plan; callsPerMonth?: number | undefined };

/** The workspace of the base to be; one that was made for it goes again if no base came into it. */
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
        if (!isBasetideError(error, "conflict")) ctx.log.warn({ error }, "unused workspace not deleted");
      });
    },
  };
}

/** Named after its plan, with a number where the account has one of that name; people may rename it. */
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
