/** The account's workspaces, by which the source counts calls, and whether each one's calls will last. */

import type { CurrentUser } from "../../core/control/accounts";
import type { Budget, Workspace } from "../../core/control/budgets";
import { BudgetPicture, Slowed } from "../budget/budget";
import { capOf, PlanChoices, type PlanForm } from "../budget/plans";
import { Badge, Button, ButtonLink, Card, ErrorNote, Field } from "../components";
import { counted } from "../format";
import { AccountFrame } from "./frame";

export interface WorkspaceForm extends PlanForm {
  name: string;
  /** As typed; empty: a fifth of the calls. */
  reserve: string;
}

export type WorkspaceErrors = Partial<Record<"name" | "plan" | "calls" | "reserve" | "form", string>>;

export interface WorkspacesProps {
  currentUser: CurrentUser;
  workspaces: { workspace: Workspace; budget: Budget }[];
  form: WorkspaceForm;
  errors: WorkspaceErrors;
  done?: string | undefined;
}

export function Workspaces({ currentUser, workspaces, form, errors, done }: WorkspacesProps) {
  return (
    <AccountFrame currentUser={currentUser} tab="/account/workspaces" done={done}>
      <p class="muted">
        Airtable counts calls by workspace and month. Say here which plan yours has, and sync goes at the pace
        that lets its calls last; some are kept for your own programs.
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
      <Card
        id="new-workspace"
        title={workspaces.length === 0 ? "Add your workspace" : "Add another workspace"}
      >
        <WorkspaceFormView
          action="/account/workspaces"
          button="Add the workspace"
          form={form}
          errors={errors}
        />
      </Card>
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
    <form method="post" action={action} class="stack narrow">
      {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
      <Field
        label="Name"
        name="name"
        value={form.name}
        error={errors.name}
        hint="As the source calls it, so that you know it again."
        maxLength={100}
        autocomplete="off"
        required
      />
      <PlanChoices legend="Plan" form={form} errors={errors} />
      <Field
        label="Kept for clients"
        name="reserve"
        inputMode="numeric"
        value={form.reserve}
        error={errors.reserve}
        hint="Calls of a month that sync never uses, for programs that call the source themselves. Left empty: a fifth of them."
        maxLength={12}
        autocomplete="off"
      />
      <Button>{button}</Button>
    </form>
  );
}
