/** The use of the base's quota: the last minutes as a chart, the month in figures. */
import type { MinuteUse, QuotaUse } from "../../core/control/budgets";
import { Slowed } from "../budget/budget";
import { Card } from "../components";
import { Bars } from "../components/bars";
import { Time } from "../components/time";
import { counted, inDigits, timeText } from "../format";

/** The requests that the source allows a base in a minute: 5 a second. */
const QUOTA_PER_MINUTE = 300;

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
      <p class="small muted">Calls this month</p>
      <dl class="figures three">
        <div>
          <dt>
            <span class="key" aria-hidden="true" /> Sync
          </dt>
          <dd>{inDigits(month.sync)}</dd>
        </div>
        <div>
          <dt>
            <span class="key client" aria-hidden="true" /> Your apps
          </dt>
          <dd>{inDigits(month.client)}</dd>
        </div>
        <div>
          <dt>Total</dt>
          <dd>{inDigits(month.sync + month.client)}</dd>
        </div>
      </dl>
    </Card>
  );
}

function titleOf({ minute, sync, client }: MinuteUse): string {
  return `${timeText.clock(minute)}: sync ${counted(sync, "call")}, your apps ${counted(client, "call")}`;
}
