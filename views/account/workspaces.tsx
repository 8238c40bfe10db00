/** The account's workspaces, by which the source counts calls, and whether each one's calls will last. */

import type { Budget, Workspace } from "../../core/control/budgets";
import type { AccountCalls } from "../../core/control/history";
import { BudgetPicture, Slowed } from "../budget/budget";
import { capOf, PlanChoices, type PlanForm, planChoices } from "../budget/plans";
import { Badge, Button, ButtonLink, Card, ErrorNote, Field, Form, FormPanel } from "../components";
import { counted } from "../format";
import { AccountCallsCard } from "./calls";
import { AccountFrame } from "./frame";

export interface WorkspaceForm extends PlanForm {
  name: string;
  /** As typed; empty: a fifth of the calls. */
  reserve: string;
}

export type WorkspaceErrors = Partial<Record<"name" | "plan" | "calls" | "reserve" | "form", string>>;

export interface WorkspacesProps {
  workspaces: { workspace: Workspace; budget: Budget }[];
  calls: AccountCalls;
  form: WorkspaceForm;
  errors: WorkspaceErrors;
}

export function Workspaces({ workspaces, calls, form, errors }: WorkspacesProps) {
  return (
    <AccountFrame tab="/account/workspaces">
      <AccountCallsCard calls={calls} />
      <h2>Workspaces</h2>
      <p class="muted">
        Airtable limits API calls per workspace and month. Set your workspace's plan here, and Basetide paces
        its syncs so that the calls last all month. Some calls are reserved for your apps.{" "}
        {workspaces.length === 0 ? "Until you add one, syncs are not paced to a monthly cap. " : null}
        <a href="/docs/syncing#the-call-budget">How budgets work</a>
      </p>
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
      <FormPanel
        id="new-workspace"
        action="/account/workspaces"
        button={workspaces.length === 0 ? "Add your workspace" : "Add another workspace"}
        isOpen={Object.keys(errors).length > 0}
      >
        <WorkspaceFormView action="/account/workspaces" button="Add workspace" form={form} errors={errors} />
      </FormPanel>
    </AccountFrame>
  );
}

export function WorkspaceFormView(props: {
  action: string;
  button: string;
  form: WorkspaceForm;
  errors: WorkspaceErrors;
}) {
  const { action, button, form, errors } = props;
  return (
    <Form action={action} class="stack rows">
      {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
      <Field
        label="Name"
        name="name"
        value={form.name}
        error={errors.name}
        hint="Its name in Airtable, so that you can recognize it."
        maxLength={100}
        autocomplete="off"
        required
      />
      <PlanChoices legend="Plan" choices={planChoices} form={form} errors={errors} />
      <Field
        label="Reserved for your apps"
        name="reserve"
        inputMode="numeric"
        value={form.reserve}
        error={errors.reserve}
        hint="Monthly calls that sync never uses, reserved for apps that call Airtable directly. Defaults to a fifth of the plan's calls."
        maxLength={12}
        autocomplete="off"
      />
      <Button>{button}</Button>
    </Form>
  );
}
