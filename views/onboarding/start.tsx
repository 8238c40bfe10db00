/** The last step: a summary, and the button. */
import type { Budget, Workspace } from "../../core/control/budgets";
import type { Draft } from "../../core/control/onboarding";
import { createdAt } from "../../core/control/placement";
import { capOf, PlanChoice, PlanChoices, type PlanForm } from "../budget/plans";
import { ErrorNote } from "../components";
import { counted, inDigits } from "../format";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";
import { PlanCostFacts, type PlanCosts } from "./plan-cost";

export interface StartProps {
  draft: Draft;
  platform: string;
  /** Name of an existing database. */
  database: string | undefined;
  /** Those of the account. */
  workspaces: { workspace: Workspace; budget: Budget }[];
  /** What each choice costs. */
  costs: PlanCosts;
  /** Where the new database will be, if that is known. */
  region: string | null;
  form: PlanForm;
  errors: { plan?: string; calls?: string; form?: string };
}

/** The question about the plan, unanswered; with a single workspace, that one is chosen. */
export function emptyPlan(workspaces: StartProps["workspaces"]): PlanForm {
  const [only] = workspaces;
  return { plan: workspaces.length === 1 ? only!.workspace.id : "", calls: "" };
}

export function StartStep(props: StartProps) {
  const { draft, platform, database, region } = props;
  return (
    <StepFrame
      draft={draft}
      step="start"
      title="Ready to sync"
      lead="Tables can be queried one by one, as soon as each is complete. After that, the database stays up to date."
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
          <dd>{describeSize(draft)}</dd>
          <dt>Copied</dt>
          <dd>
            {draft.selection ? "A part of them" : "Everything"}.{" "}
            <a href={`/new/${draft.id}/selection`}>Choose what is copied</a>
          </dd>
          <dt>Destination</dt>
          <dd class="wrap">{describe(draft, database, region)}</dd>
        </dl>
        <StartForm {...props} />
      </div>
    </StepFrame>
  );
}

export function StartForm({ draft, platform, workspaces, costs, form, errors }: StartProps) {
  return (
    <form {...enhanced(stepPath(draft, "start"))} class="stack">
      {errors.form ? <ErrorNote title="Syncing did not start">{errors.form}</ErrorNote> : null}
      <PlanChoices
        legend={`Which ${platform} plan is this base's workspace on?`}
        form={form}
        errors={errors}
        more={(value) => <PlanCostFacts cost={costs.get(value)} />}
      >
        {workspaces.map(({ workspace, budget }) => (
          <PlanChoice
            key={workspace.id}
            value={workspace.id}
            chosen={form.plan}
            name={workspace.name}
            about={aboutWorkspace(workspace, budget)}
          >
            <PlanCostFacts cost={costs.get(workspace.id)} />
          </PlanChoice>
        ))}
      </PlanChoices>
      <p class="muted small">
        {platform} limits API calls per month by plan. Basetide paces its syncs so that the calls last, and
        reserves a fifth for your apps. You can change the plan at any time under Workspaces.{" "}
        <a href="/docs/syncing#the-call-budget">How syncs are paced</a>
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

function describeSize({ size, selection }: Draft): string {
  if (!size) return "All of them";
  return `${selection ? "" : "All "}${counted(size.tables, "table")}, ${size.isExact ? "" : "more than "}${counted(size.records, "record")}`;
}

function describe({ destination }: Draft, database: string | undefined, region: string | null): string {
  if (destination?.kind === "existing") return `${database ?? "your database"}, schema ${destination.schema}`;
  if (destination?.kind === "external") return `${destination.address}, schema ${destination.schema}`;
  return `A new database, ${createdAt(region)}`;
}
