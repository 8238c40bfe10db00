/** The choice of a base's workspace, whose call budget applies. */
import type { Base } from "../../core/control/bases";
import type { Workspace } from "../../core/control/budgets";
import { capOf } from "../budget/plans";
import { Button, Form, SelectField } from "../components";

/** The value for no workspace. */
export const NO_WORKSPACE = "none";

export function WorkspaceChoice(props: { base: Base; workspaces: Workspace[]; error?: string | undefined }) {
  const { base, workspaces, error } = props;
  return (
    <div id="call-budget" class="rows">
      {workspaces.length === 0 ? (
        <>
          <strong>Call budget</strong>
          <p class="hint">
            No cap is set. <a href="/account/workspaces">Add your workspace and its plan</a> if your Airtable
            plan limits calls per month: Basetide then paces its syncs.
          </p>
        </>
      ) : (
        <Form action={`/bases/${base.id}/workspace`} class="rows one-line wide">
          <SelectField
            label="Workspace"
            name="workspace"
            value={base.workspaceId ?? NO_WORKSPACE}
            error={error}
            hint={
              <>
                Whose call budget paces the syncs. Change plans and reserves under{" "}
                <a href="/account/workspaces">Usage</a>.
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
    </div>
  );
}
