/** The question for a plan: what the source's price list says of it, and a number of one's own. */
import type { ComponentChildren } from "preact";
import { type Plan, planCalls, type Workspace } from "../../core/control/budgets";
import { Field } from "../components";
import { counted } from "../format";

const planNames: Record<Plan, string> = {
  free: "Free",
  team: "Team",
  business: "Business or no cap",
  custom: "Another number",
};

/** `Team: 100,000 calls a month`, `Business or no cap`. */
export function capOf({ plan, callsPerMonth }: Pick<Workspace, "plan" | "callsPerMonth">): string {
  if (callsPerMonth === null) return planNames.business;
  const calls = `${counted(callsPerMonth, "call")} a month`;
  return plan === "custom" ? calls : `${planNames[plan]}: ${calls}`;
}

const about: Record<Plan, string> = {
  free: `${counted(planCalls.free ?? 0, "call")} a month. Then the source answers nothing more until the next month.`,
  team: `${counted(planCalls.team ?? 0, "call")} a month. Then the source allows two a second.`,
  business: "Sync goes at full pace.",
  custom: "For a plan of another kind, or where other programs need most of the calls.",
};

const order: Plan[] = ["business", "team", "free", "custom"];

export interface PlanForm {
  /** A plan, or the id of a workspace that is there. */
  plan: string;
  /** As typed. */
  calls: string;
}

/** Radio buttons; `children` go before them, for choices of another kind with the same name, `plan`. */
export function PlanChoices(props: {
  legend: string;
  form: PlanForm;
  errors: { plan?: string | undefined; calls?: string | undefined };
  children?: ComponentChildren;
}) {
  const { legend, form, errors, children } = props;
  return (
    <fieldset class="stack">
      <legend>{legend}</legend>
      {errors.plan ? (
        <p class="field-error" role="alert">
          {errors.plan}
        </p>
      ) : null}
      <div class="choices">
        {children}
        {order.map((plan) => (
          <PlanChoice key={plan} value={plan} chosen={form.plan} name={planNames[plan]} about={about[plan]}>
            {plan === "custom" ? (
              <Field
                label="Calls a month"
                name="calls"
                inputMode="numeric"
                value={form.calls}
                error={errors.calls}
                placeholder="50000"
                maxLength={12}
                autocomplete="off"
              />
            ) : null}
          </PlanChoice>
        ))}
      </div>
    </fieldset>
  );
}

export function PlanChoice(props: {
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
      {children ? <div class="choice-more">{children}</div> : null}
    </div>
  );
}
