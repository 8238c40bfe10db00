/** The use of the base's quota: the last minutes as a chart, the month in figures. */
import type { MinuteUse, QuotaUse } from "../../core/control/budgets";
import { Slowed } from "../budget/budget";
import { Card } from "../components";
import { Bars } from "../components/bars";
import { Time } from "../components/time";
import { counted, inDigits, timeText } from "../format";

/** The requests that the source allows a base in a second, and in a minute. */
const QUOTA_PER_SECOND = 5;
const QUOTA_PER_MINUTE = 60 * QUOTA_PER_SECOND;
/** Whole minutes of which the current rate is the mean. */
const RATE_MINUTES = 5;

const reasons: Record<string, string> = {
  rate_limited: "Airtable has asked for a pause",
  billing_limit: "Airtable's monthly call limit is reached",
};

export function Usage({ use }: { use: QuotaUse }) {
  const { minutes, month, blocked, slowed } = use;
  const recent = minutes.reduce((sum, minute) => sum + minute.sync + minute.client, 0);
  const most = Math.max(...minutes.map((minute) => minute.sync + minute.client));
  return (
    <Card id="usage-card" title="Quota">
      {blocked ? (
        <p>
          {reasons[blocked.reason] ?? "Requests to Airtable are paused"}. No requests are sent until{" "}
          <Time at={blocked.until} form="clock" />.
        </p>
      ) : null}
      <Slowed slowed={slowed} />
      <p>
        Using {rateOf(minutes)} of {QUOTA_PER_SECOND} calls a second{" "}
        <span class="muted">(the {RATE_MINUTES} minutes before this one)</span>
      </p>
      <div class="chart">
        <span class="chart-top small muted" aria-hidden="true">
          {QUOTA_PER_MINUTE} a minute
        </span>
        <Bars
          summary={`Calls to Airtable: ${inDigits(recent)} in the last ${minutes.length} minutes, at most ${inDigits(most)} of ${QUOTA_PER_MINUTE} in one.`}
          slots={minutes.length}
          top={Math.max(QUOTA_PER_MINUTE, most)}
          bars={minutes.map((minute) => ({
            key: minute.minute.toISOString(),
            title: titleOf(minute),
            at: minute.minute,
            parts: [
              { value: minute.sync, class: "bar" },
              { value: minute.client, class: "bar client" },
            ],
          }))}
        />
        <p class="chart-foot small muted" aria-hidden="true">
          <span>{minutes.length} min ago</span>
          <span>now</span>
        </p>
      </div>
      {/* A minute does not tell the two apart. */}
      <p class="chart-key small muted">
        <span>
          <span class="key" aria-hidden="true" /> sync
        </span>
        <span>
          <span class="key client" aria-hidden="true" /> your apps and the console
        </span>
      </p>
      <p class="small muted">Calls this month</p>
      <dl class="figures">
        <div>
          <dt>Sync</dt>
          <dd>{inDigits(month.sync)}</dd>
        </div>
        <div>
          <dt>Your apps</dt>
          <dd>{inDigits(month.client)}</dd>
        </div>
        <div>
          <dt>Console</dt>
          <dd>{inDigits(month.console)}</dd>
        </div>
        <div>
          <dt>Total</dt>
          <dd>{inDigits(month.sync + month.client + month.console)}</dd>
        </div>
      </dl>
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
