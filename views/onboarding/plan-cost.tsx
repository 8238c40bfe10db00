/** What a plan means for the base that is being connected, in a few short facts. */
import { sourcePlans } from "../../core/control/budgets";
import { type CallEstimate, lastsMs } from "../../core/sync/pacing";
import { aboutDigits, inDigits, roughly } from "../format";

export interface PlanCost extends CallEstimate {
  /** Null: no cap. */
  callsPerMonth: number | null;
  /** False if the base has more records than were counted. */
  isExact: boolean;
}

/** By the value of the choice. */
export type PlanCosts = ReadonlyMap<string, PlanCost>;

export function PlanCostFacts({ cost }: { cost: PlanCost | undefined }) {
  if (!cost) return null;
  const { callsPerMonth, firstSync, quietPerDay, busyPerDay, isExact, isFirstSyncWithin } = cost;
  const isCapped = callsPerMonth !== null;
  return (
    <dl class="plan-cost small">
      <div>
        <dt>First sync, calls</dt>
        <dd class={isFirstSyncWithin ? undefined : "over"}>
          {isExact ? "" : "from "}
          {inDigits(firstSync)}
        </dd>
      </div>
      <div>
        <dt>{isCapped ? "Then, calls a day this month" : "Then, calls a day"}</dt>
        <dd>{isCapped || quietPerDay === busyPerDay ? `up to ${aboutDigits(busyPerDay)}` : range(cost)}</dd>
      </div>
      <div>
        <dt>Month's cap</dt>
        <dd class={isFirstSyncWithin ? undefined : "over"}>
          {isCapped ? (isFirstSyncWithin ? "lasts the month" : "spent by the first sync") : "none"}
        </dd>
      </div>
      <div>
        <dt>Full check every</dt>
        <dd>
          {roughly(cost.fullCheckMs)}
          {isExact ? "" : " or more"}
        </dd>
      </div>
      {isCapped ? null : (
        <div class="wide">
          <dt>If your plan does have a cap</dt>
          <dd>{capsSpent(busyPerDay)}</dd>
        </div>
      )}
    </dl>
  );
}

/** `Team's 100,000 calls last 9 hours, Free's 1,000 calls last 6 minutes while records keep changing.` */
function capsSpent(perDay: number): string {
  const spent = sourcePlans.flatMap(({ name, callsPerMonth }) =>
    callsPerMonth === null
      ? []
      : [`${name}'s ${inDigits(callsPerMonth)} calls last ${roughly(lastsMs(callsPerMonth, perDay))}`],
  );
  return `${spent.join(", ")} while records keep changing.`;
}

function range({ quietPerDay, busyPerDay }: PlanCost): string {
  return `${aboutDigits(quietPerDay)} to ${aboutDigits(busyPerDay)}`;
}
