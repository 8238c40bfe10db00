/** The account's workspaces, by which the source counts calls, and whether each one's calls will last. */

import type { Budget, Workspace } from "../../core/control/budgets";
import type { AccountCalls } from "../../core/control/history";
import { BudgetPicture, Slowed } from "../budget/budget";
import { capOf } from "../budget/plans";
import { Badge, ButtonLink, Card, FieldsForm, FormPanel, type FormState, hasErrors } from "../components";
import { counted } from "../format";
import { AccountCallsCard } from "./calls";

interface WorkspacesProps {
  workspaces: { workspace: Workspace; budget: Budget }[];
  calls: AccountCalls;
  /** For a new one. */
  form: FormState;
}

export function Workspaces({ workspaces, calls, form }: WorkspacesProps) {
  return (
    <>
      <AccountCallsCard calls={calls} />
      <Card id="workspaces" title="Workspaces">
        <FormPanel
          id="new-workspace"
          action="/account/workspaces"
          button={workspaces.length === 0 ? "Add your workspace" : "Add another workspace"}
          isOpen={hasErrors(form)}
        >
          <FieldsForm action="/account/workspaces" button="Add workspace" form={form} />
        </FormPanel>
        <p class="muted">
          Airtable limits API calls per workspace and month. Set your workspace's plan here, and Basetide
          paces its syncs so that the calls last all month. Some calls are reserved for your apps.{" "}
          {workspaces.length === 0 ? "Until you add one, syncs are not paced to a monthly cap. " : null}
          <a href="/docs/syncing#the-call-budget">How budgets work</a>
        </p>
      </Card>
      {workspaces.map(({ workspace, budget }) => (
        <Card
          key={workspace.id}
          id={workspace.id}
          title={workspace.name}
          actions={
            <ButtonLink isSmall href={`/account/workspaces/${workspace.id}`}>
              Change<span class="visually-hidden"> {workspace.name}</span>
            </ButtonLink>
          }
        >
          <p class="muted">
            <Badge>{capOf(workspace)}</Badge> {counted(workspace.baseIds.length, "base")}
          </p>
          <BudgetPicture budget={budget} />
          <Slowed slowed={budget.slowed} />
        </Card>
      ))}
    </>
  );
}
