/** The last step: a summary, the plan, and the button, which all fit on a screen. */
import { type Budget, quotaKeyOf, sourcePlans, type Workspace } from "../../core/control/budgets";
import type { Draft } from "../../core/control/onboarding";
import { createdAt } from "../../core/control/placement";
import { timeOfCalls } from "../../core/control/status";
import { syncShare } from "../../core/limiter";
import { strictest } from "../../core/source";
import { capOf, PlanChoices, type PlanForm, planName } from "../budget/plans";
import { ErrorNote } from "../components";
import { aboutDigits, capitalized, counted, inDigits, rangeText } from "../format";
import { enhanced, GoOn, StepFrame, stepPath } from "./frame";
import { type PlanCosts, PlanSentence, PlanTable } from "./plan-cost";

/** The schema is read before and after. */
const SCHEMA_CALLS = 2;

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

/** The answer of users who do not know their plan. */
export const UNSURE = "unsure";
/** What it means: the plan with the fewest calls. */
export const strictestPlan = sourcePlans.reduce((least, plan) =>
  (plan.callsPerMonth ?? Number.POSITIVE_INFINITY) < (least.callsPerMonth ?? Number.POSITIVE_INFINITY)
    ? plan
    : least,
);

/** With a single workspace, that one is chosen. */
export function defaultPlan(workspaces: StartProps["workspaces"]): PlanForm {
  const [only] = workspaces;
  return { plan: workspaces.length === 1 ? only!.workspace.id : UNSURE, calls: "" };
}

export function StartStep(props: StartProps) {
  const { draft, database, region } = props;
  return (
    <StepFrame draft={draft} step="start" title="Ready to sync">
      <div class="card stack">
        <dl class="facts">
          <dt>Base</dt>
          <dd class="wrap">{draft.sourceBase?.name}</dd>
          <dt>Copied</dt>
          <dd>
            {describeSize(draft)}. <a href={`/new/${draft.id}/selection`}>Choose what is copied</a>
          </dd>
          <dt>Destination</dt>
          <dd class="wrap">{describe(draft, database, region)}</dd>
          <dt>First sync</dt>
          <dd>{describeTime(draft)}</dd>
        </dl>
        <StartForm {...props} />
      </div>
    </StepFrame>
  );
}

export function StartForm({ draft, platform, workspaces, costs, form, errors }: StartProps) {
  const names = new Map([
    ...workspaces.map(({ workspace }) => [workspace.id, workspace.name] as const),
    ...sourcePlans.map((plan) => [plan.id, planName(plan)] as const),
  ]);
  const sentence = (value: string) => <PlanSentence cost={costs.get(value)} />;
  const choices = [
    ...workspaces.map(({ workspace, budget }) => ({
      value: workspace.id,
      name: workspace.name,
      about: (
        <>
          {aboutWorkspace(workspace, budget)} {sentence(workspace.id)}
        </>
      ),
    })),
    {
      value: UNSURE,
      name: "Not sure",
      about: (
        <>
          We stay within {strictestPlan.name}'s {inDigits(strictestPlan.callsPerMonth ?? 0)} calls a month
          until you choose a plan under Usage. {sentence(strictestPlan.id)}
        </>
      ),
    },
    ...sourcePlans.toReversed().map((plan) => ({
      value: plan.id,
      name: planName(plan),
      about: sentence(plan.id),
    })),
  ];
  return (
    <form {...enhanced(stepPath(draft, "start"))} class="stack">
      {errors.form ? <ErrorNote title="Syncing did not start">{errors.form}</ErrorNote> : null}
      <PlanChoices
        legend={`${platform} plan of this base's workspace`}
        choices={choices}
        form={form}
        errors={errors}
      />
      <GoOn text="Start syncing" busy="Creating the database…" />
      <details>
        <summary>Compare plans</summary>
        <div class="stack">
          <p class="muted small">
            {platform} limits API calls per month by plan. Basetide paces its syncs so that the calls last,
            and reserves a fifth for your apps. You can change the plan at any time under Usage.{" "}
            <a href="/docs/syncing#the-call-budget">How syncs are paced</a>
          </p>
          {costs.size === 0 ? null : <PlanTable costs={costs} names={names} />}
        </div>
      </details>
    </form>
  );
}

function aboutWorkspace(workspace: Workspace, { callsPerMonth, used }: Budget): string {
  if (callsPerMonth === null) return `${capOf(workspace)}, shared with its other bases.`;
  const calls = `${inDigits(used.sync + used.client)} of ${inDigits(callsPerMonth)} calls used this month`;
  return `${calls}, shared with the workspace's other bases.`;
}

/** `All 3 tables, about 50,000 records`. */
function describeSize({ size, selection }: Draft): string {
  if (!size) return selection ? "A part of its tables" : "All tables";
  const all = counted(size.tables, "table");
  const tables = selection ? `A part of ${all}` : size.tables > 1 ? `All ${all}` : all;
  const records = size.error > 0 ? aboutDigits(size.records) : inDigits(size.records);
  const how = !size.isKnown ? "more than " : size.error > 0 ? "about " : "";
  return `${tables}, ${how}${records} record${size.records === 1 ? "" : "s"}`;
}

function describeTime({ size, platform, sourceBase }: Draft): string {
  const ready = "Each table can be queried as soon as it is complete";
  if (!size?.isKnown || !sourceBase) return ready;
  const share = syncShare(quotaKeyOf({ platform, sourceBaseId: sourceBase.id }), false);
  const range = timeOfCalls(size.calls + SCHEMA_CALLS, size.error / strictest().pageSize, share);
  return `${capitalized(rangeText(range))}. ${ready}`;
}

function describe({ destination }: Draft, database: string | undefined, region: string | null): string {
  if (destination?.kind === "existing") return `${database ?? "your database"}, schema ${destination.schema}`;
  if (destination?.kind === "external") return `${destination.address}, schema ${destination.schema}`;
  return `A new database, ${createdAt(region)}`;
}
