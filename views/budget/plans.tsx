/** The question about the plan: the source's price list, and a custom number. */
import type { ComponentChildren } from "preact";
import { sourcePlans, type Workspace } from "../../core/control/budgets";
import type { SourcePlan } from "../../core/source";
import { Field } from "../components";
import { counted } from "../format";

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

/** An answer, and what it means. */
interface PlanChoice {
  /** A plan, or the id of an existing workspace. */
  value: string;
  name: string;
  about: ComponentChildren;
}

/** The source's plans, the smallest first, with what each limits. */
export const planChoices: PlanChoice[] = sourcePlans.toReversed().map((plan) => ({
  value: plan.id,
  name: planName(plan),
  about: aboutOf(plan),
}));

/** Radio buttons with the name `plan` in a row, and below it what the chosen one means. The last is a number of calls. */
export function PlanChoices(props: {
  legend: string;
  choices: PlanChoice[];
  form: PlanForm;
  errors: { plan?: string | undefined; calls?: string | undefined };
}) {
  const { legend, choices, form, errors } = props;
  return (
    <fieldset>
      <legend>{legend}</legend>
      {errors.plan ? (
        <p class="field-error" role="alert">
          {errors.plan}
        </p>
      ) : null}
      <div class="pills">
        {choices.map(({ value, name, about }) => (
          <Pill key={value} value={value} name={name} chosen={form.plan}>
            <p class="pill-more muted small">{about}</p>
          </Pill>
        ))}
        <Pill value="custom" name="Custom" chosen={form.plan}>
          <div class="pill-more">
            <Field
              label="Calls per month"
              name="calls"
              inputMode="numeric"
              value={form.calls}
              error={errors.calls}
              hint="For another plan, or if your other apps need most of the calls."
              placeholder="50000"
              maxLength={12}
            />
          </div>
        </Pill>
      </div>
    </fieldset>
  );
}

function Pill(props: { value: string; name: string; chosen: string; children: ComponentChildren }) {
  const { value, name, chosen, children } = props;
  return (
    <div class="pill">
      <span class="pill-choice">
        <input
          type="radio"
          name="plan"
          id={`plan-${value}`}
          value={value}
          checked={value === chosen}
          required
        />
        <label for={`plan-${value}`}>
          <bdi>{name}</bdi>
        </label>
      </span>
      {children}
    </div>
  );
}
