/** The choice of a base's workspace, whose call budget applies. */
import type { Base } from "../../core/control/bases";
import type { Workspace } from "../../core/control/budgets";
import { capOf } from "../budget/plans";
import { Button, Card, Form } from "../components";
import { SelectField } from "../components/field";

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
