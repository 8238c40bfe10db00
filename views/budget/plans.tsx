/** The question about the plan: the source's price list, and a custom number. */
import type { ComponentChildren } from "preact";
import { type Plan, sourcePlans, type Workspace } from "../../core/control/budgets";
import type { SourcePlan } from "../../core/source";
import { Field } from "../components";
import { counted } from "../format";

interface PlanText {
  id: Plan;
  name: string;
  about: string;
}

const choices: PlanText[] = [
  ...sourcePlans.map((plan) => ({ id: plan.id, name: planName(plan), about: aboutOf(plan) })),
  {
    id: "custom",
    name: "Custom",
    about: "For another plan, or if your other apps need most of the calls.",
  },
];

/** `Team`, `Business or no cap`. */
export function planName({ name, callsPerMonth }: SourcePlan): string {
  return callsPerMonth === null ? `${name} or no cap` : name;
}

function aboutOf({ callsPerMonth, beyond }: SourcePlan): string {
  const calls = `${counted(callsPerMonth ?? 0, "call")} per month.`;
  if (beyond === "unlimited") return "Sync runs at full speed.";
  return beyond === "slowed"
    ? `${calls} Then Airtable limits you to 2 calls per second.`
    : `${calls} Then Airtable rejects all calls until next month.`;
}

/** `Team: 100,000 calls a month`, `Business or no cap`. */
export function capOf({ plan, callsPerMonth }: Pick<Workspace, "plan" | "callsPerMonth">): string {
  const sold = sourcePlans.find(({ id }) => id === plan);
  if (callsPerMonth === null) return sold ? planName(sold) : "No cap";
  const calls = `${counted(callsPerMonth, "call")} per month`;
  return sold ? `${sold.name}: ${calls}` : calls;
}

export interface PlanForm {
  /** A plan, or the id of an existing workspace. */
  plan: string;
  /** As typed. */
  calls: string;
}

/** Radio buttons with the name `plan`. */
export function PlanChoices(props: {
  legend: string;
  form: PlanForm;
  errors: { plan?: string | undefined; calls?: string | undefined };
}) {
  const { legend, form, errors } = props;
  return (
    <fieldset class="stack">
      <legend>{legend}</legend>
      {errors.plan ? (
        <p class="field-error" role="alert">
          {errors.plan}
        </p>
      ) : null}
      <div class="choices">
        {choices.map(({ id, name, about }) => (
          <PlanChoice key={id} value={id} chosen={form.plan} name={name} about={about}>
            {id === "custom" ? (
              <div class="choice-more">
                <Field
                  label="Calls per month"
                  name="calls"
                  inputMode="numeric"
                  value={form.calls}
                  error={errors.calls}
                  placeholder="50000"
                  maxLength={12}
                  autocomplete="off"
                />
              </div>
            ) : null}
          </PlanChoice>
        ))}
      </div>
    </fieldset>
  );
}

function PlanChoice(props: {
  value: string;
  chosen: string;
  name: string;
  about: string;
  children?: ComponentChildren;
}) {
  const { value, chosen, name, about, children } = props;
  return (
    <div class="choice">
      <input
        type="radio"
        name="plan"
        id={`plan-${value}`}
        value={value}
        checked={value === chosen}
        required
      />
      <label for={`plan-${value}`}>
        <span class="choice-name">{name}</span>
        <span class="muted small">{about}</span>
      </label>
      {children}
    </div>
  );
}
