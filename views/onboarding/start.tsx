/** The last step: a summary, and the button. */
import { type Budget, sourcePlans, type Workspace } from "../../core/control/budgets";
import type { Draft } from "../../core/control/onboarding";
import { capOf, PlanChoice, PlanChoices, type PlanForm } from "../budget/plans";
import { ErrorNote } from "../components";
import { inDigits } from "../format";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";

export interface StartProps {
  draft: Draft;
  platform: string;
  /** Name of an existing database. */
  database: string | undefined;
  /** Those of the account. */
  workspaces: { workspace: Workspace; budget: Budget }[];
  form: PlanForm;
  errors: { plan?: string; calls?: string; form?: string };
}

/** The default values of the question about the plan. */
export const NO_PLAN: PlanForm = { plan: sourcePlans[0]?.id ?? "custom", calls: "" };

export function StartStep(props: StartProps) {
  const { draft, platform, database } = props;
  return (
    <StepFrame
      draft={draft}
      step="start"
      title="Ready to sync"
      lead="The first sync of 10,000 records takes about half a minute. After that, the database stays up to date."
    >
      <div class="card stack">
        <dl class="facts">
          <dt>Platform</dt>
          <dd>{platform}</dd>
          <dt>Base</dt>
          <dd class="wrap">
            {draft.sourceBase?.name} <span class="muted small">{draft.sourceBase?.id}</span>
          </dd>
          <dt>Tables</dt>
          <dd>All of them</dd>
          <dt>Destination</dt>
          <dd class="wrap">{describe(draft, database)}</dd>
        </dl>
        <StartForm {...props} />
      </div>
    </StepFrame>
  );
}

export function StartForm({ draft, platform, workspaces, form, errors }: StartProps) {
  return (
    <form {...enhanced(stepPath(draft, "start"))} class="stack">
      {errors.form ? <ErrorNote title="Syncing did not start">{errors.form}</ErrorNote> : null}
      <PlanChoices legend={`Which ${platform} plan is this base's workspace on?`} form={form} errors={errors}>
        {workspaces.map(({ workspace, budget }) => (
          <PlanChoice
            key={workspace.id}
            value={workspace.id}
            chosen={form.plan}
            name={workspace.name}
            about={aboutWorkspace(workspace, budget)}
          />
        ))}
      </PlanChoices>
      <p class="muted small">
        {platform} limits API calls per month by plan. Basetide paces its syncs so that the calls last, and
        reserves a fifth for your apps. You can change the plan at any time under Workspaces.
      </p>
      <GoOn text="Start syncing" busy="Creating the database…" />
    </form>
  );
}

function aboutWorkspace(workspace: Workspace, { callsPerMonth, used }: Budget): string {
  if (callsPerMonth === null) return `${capOf(workspace)}, shared with its other bases.`;
  const calls = `${inDigits(used.sync + used.client)} of ${inDigits(callsPerMonth)} calls used this month`;
  return `${calls}, shared with the workspace's other bases.`;
}

function describe({ destination }: Draft, database: string | undefined): string {
  if (destination?.kind === "existing") return `${database ?? "your database"}, schema ${destination.schema}`;
  if (destination?.kind === "external") return `${destination.address}, schema ${destination.schema}`;
  return "A new database, created and hosted by us";
}
