import type { Db } from "../../core/context";
import { type Budget, budgetsOf, listWorkspaces, type Workspace } from "../../core/control/budgets";

/** The account's workspaces with the current state of their budgets. */
export async function workspacesWithBudgets(
  db: Db,
  accountId: string,
): Promise<{ workspace: Workspace; budget: Budget }[]> {
  const workspaces = await listWorkspaces(db, accountId);
  const ids = workspaces.map(({ id }) => id);
  const budgets = await budgetsOf(db, ids);
  return workspaces.flatMap((workspace) => {
    const budget = budgets.get(workspace.id);
    return budget ? [{ workspace, budget }] : [];
  });
}
