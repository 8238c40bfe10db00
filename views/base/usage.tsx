/** The calls to the source: the last minutes as a chart, the month in a sentence, and its budget. */

import type { Budget, MinuteUse, QuotaUse } from "../../core/control/budgets";
import { proxied } from "../../core/source";
import { BudgetAnswer, explanationOf, Slowed } from "../budget/budget";
import { ButtonLink, Card, ChartKey, Time } from "../components";
import { fullScale, TimeChart } from "../components/time-chart";
import { counted, inDigits, timeText } from "../format";

/** The requests that the source allows a base in a second, and in a minute. */
const perSecond = (1000 * proxied.limits.requestsPerWindow) / proxied.limits.windowMs;
const perMinute = 60 * perSecond;
/** Whole minutes of which the current rate is the mean. */
const RATE_MINUTES = 5;

const reasons: Record<string, string> = {
  rate_limited: "Airtable has asked for a pause",
  billing_limit: "Airtable's monthly call limit is reached",
};

/** @param props.budget of the base's workspace; null: no cap */
export function Usage({ use, budget }: { use: QuotaUse; budget: Budget | null }) {
  const { minutes, month, blocked, slowed } = use;
  const recent = minutes.reduce((sum, minute) => sum + minute.sync + minute.client, 0);
  const most = Math.max(...minutes.map((minute) => minute.sync + minute.client));
  return (
    <Card
      id="usage-card"
      title="Calls to Airtable"
      actions={
        <ButtonLink
          isSmall
          kind="quiet"
          href={`/account/workspaces${budget === null ? "" : `/${budget.workspaceId}`}`}
        >
          Usage{budget === null ? "" : ` of ${budget.name}`}
        </ButtonLink>
      }
    >
      {blocked ? (
        <p>
          {reasons[blocked.reason] ?? "Requests to Airtable are paused"}. No requests are sent until{" "}
          <Time at={blocked.until} form="clock" />.
        </p>
      ) : null}
      <Slowed slowed={slowed} />
      <TimeChart
        summary={`Calls to Airtable: ${inDigits(recent)} in the last ${minutes.length} minutes, at most ${inDigits(most)} of ${perMinute} in one.`}
        timeForm="clock"
        scale={fullScale(Math.max(perMinute, most))}
        bars={minutes.map((minute) => ({
          title: titleOf(minute),
          at: minute.minute,
          parts: [
            { value: minute.sync, class: "bar" },
            { value: minute.client, class: "bar client" },
          ],
        }))}
        foot={[`${minutes.length} min ago`, "now"]}
      />
      <p class="small">
        Using {rateOf(minutes)} of {perSecond} calls a second{" "}
        <span class="muted">(the {RATE_MINUTES} minutes before this one)</span>. This month: sync{" "}
        {inDigits(month.sync)}, your apps {inDigits(month.client)}, console {inDigits(month.console)}.
      </p>
      {/* A minute does not tell the two apart. */}
      <ChartKey keys={[{ text: "sync" }, { look: "client", text: "your apps and the console" }]} />
      {budget?.callsPerMonth == null ? null : (
        // How fast a base may sync is on the page of the workspace.
        <BudgetAnswer budget={budget}>
          {budget.state === "inside" ? undefined : explanationOf(budget)}
        </BudgetAnswer>
      )}
    </Card>
  );
}

/** Calls a second, without the current minute. */
function rateOf(minutes: MinuteUse[]): string {
  const whole = minutes.slice(-RATE_MINUTES - 1, -1);
  const calls = whole.reduce((sum, { sync, client }) => sum + sync + client, 0);
  return (calls / (60 * RATE_MINUTES)).toFixed(calls > 0 && calls < 15 ? 2 : 1);
}

function titleOf({ minute, sync, client }: MinuteUse): string {
  return `${timeText.clock(minute)}: sync ${counted(sync, "call")}, your apps and the console ${counted(client, "call")}`;
}
