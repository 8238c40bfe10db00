/** One workspace: the use of its calls, its bases, and its settings. */

import type { Base } from "../../core/control/bases";
import type { Budget, Workspace } from "../../core/control/budgets";
import { BudgetPicture, CallsByKind, Slowed } from "../budget/budget";
import { BackLink, Card, DialogLink, ErrorNote, FieldsForm, type FormState } from "../components";

interface WorkspacePageProps {
  workspace: Workspace;
  budget: Budget;
  bases: Pick<Base, "id" | "name" | "sourceBaseId">[];
  form: FormState;
  /** Why it was not deleted. */
  problem?: string | undefined;
}

export function WorkspacePage(props: WorkspacePageProps) {
  const { workspace, budget, bases, form, problem } = props;
  const path = `/account/workspaces/${workspace.id}`;
  return (
    <>
      <BackLink href="/account/workspaces">All workspaces</BackLink>
      <Card id="workspace" title={workspace.name}>
        <BudgetPicture budget={budget} />
        <Slowed slowed={budget.slowed} />
      </Card>
      <div class="pair">
        <Card id="kinds" title="Sync's calls by purpose">
          <CallsByKind budget={budget} />
        </Card>
        <Card id="workspace-bases" title="Bases in this workspace">
          {bases.length === 0 ? (
            <p class="muted">No bases yet. Choose this workspace in a base's settings.</p>
          ) : (
            <ul class="bullets">
              {bases.map((base) => (
                <li key={base.id} class="wrap">
                  <a href={`/bases/${base.id}`}>
                    <bdi>{base.name || base.sourceBaseId}</bdi>
                  </a>
                </li>
              ))}
            </ul>
          )}
        </Card>
      </div>
      <Card id="change" title="Change">
        <FieldsForm action={path} button="Save" form={form} />
      </Card>
      <Card id="end" title="Delete">
        {problem ? <ErrorNote>{problem}</ErrorNote> : null}
        <p class="muted">Only a workspace without bases can be deleted. Nothing changes in Airtable.</p>
        <DialogLink kind="danger" href={`${path}/delete`}>
          Delete workspace…
        </DialogLink>
      </Card>
    </>
  );
}
