/** The call budget of a base's workspace: on the overview, and in the settings. */
import type { Base } from "../../core/control/bases";
import type { Budget, Workspace } from "../../core/control/budgets";
import { BudgetPicture } from "../budget/budget";
import { capOf } from "../budget/plans";
import { Button, ButtonLink, Card, Form } from "../components";
import { SelectField } from "../components/field";

/** Without a cap there is nothing to show; the settings explain how to set one. */
export function BudgetCard({ budget }: { budget: Budget | null }) {
  if (!budget || budget.callsPerMonth === null) return null;
  return (
    <Card
      id="budget-card"
      title="Call budget"
      actions={
        <ButtonLink isSmall kind="quiet" href={`/account/workspaces/${budget.workspaceId}`}>
          {budget.name}
        </ButtonLink>
      }
    >
      <BudgetPicture budget={budget} />
    </Card>
  );
}

/** The value for no workspace. */
export const NO_WORKSPACE = "none";

export function WorkspaceChoice(props: { base: Base; workspaces: Workspace[]; error?: string | undefined }) {
  const { base, workspaces, error } = props;
  return (
    <Card id="call-budget" title="Call budget">
      <p class="muted">
        If your Airtable plan limits API calls per month, Basetide paces its syncs so that the calls last, and
        reserves some for your apps.
      </p>
      {workspaces.length === 0 ? (
        <p>
          No cap is set. <a href="/account/workspaces">Add your workspace and its plan</a> if your Airtable
          plan has one.
        </p>
      ) : (
        <Form action={`/bases/${base.id}/workspace`} class="stack rows">
          <SelectField
            label="Workspace"
            name="workspace"
            value={base.workspaceId ?? NO_WORKSPACE}
            error={error}
            hint={
              <>
                Change plans and reserves under <a href="/account/workspaces">Workspaces</a>.
              </>
            }
            options={[
              { value: NO_WORKSPACE, text: "None (no cap)" },
              ...workspaces.map((one) => ({ value: one.id, text: `${one.name} (${capOf(one)})` })),
            ]}
          />
          <Button>Save</Button>
        </Form>
      )}
    </Card>
  );
}
