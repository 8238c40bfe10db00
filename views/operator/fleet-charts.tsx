/** The fleet over the last 24 hours: lag, calls, and bases with an outage. */

import type { FleetHour, LagHistory } from "../../core/control/history";
import { LagChart, LagTable, lagSummary, timeOf } from "../base/lag-chart";
import { Card, ChartKey, Table } from "../components";
import { Time, Zone } from "../components/time";
import { type ChartBar, TimeChart } from "../components/time-chart";
import { counted, inDigits } from "../format";

const COLLECTING = "Collecting: each hour is added when it is over.";

interface ChartProps {
  hours: FleetHour[];
  now: Date;
}

interface HourProps extends Pick<ChartProps, "hours"> {
  /** An hour is over in which a base was synced. */
  isMeasured: boolean;
}

export function FleetCharts({ hours, now }: ChartProps) {
  const isMeasured = hours.some(({ p50Ms }) => p50Ms !== null);
  const history: LagHistory = {
    range: "24h",
    lag: hours,
    periods: [],
    markers: [],
    now,
    silence: "not_read",
  };
  return (
    <>
      <Card id="fleet-lag" title="Lag of all bases, last 24 hours">
        <p class="muted small">
          The median of the bases' medians, and the greatest, of whole hours.{" "}
          {isMeasured ? lagSummary(history) : COLLECTING}
        </p>
        <LagChart history={history} />
        <LagTable history={history} />
      </Card>
      <div class="pair">
        <Calls hours={hours} isMeasured={isMeasured} />
        <Outages hours={hours} isMeasured={isMeasured} />
      </div>
      <details>
        <summary>Calls and outages as a table</summary>
        <Numbers hours={hours} />
      </details>
    </>
  );
}

function Calls({ hours, isMeasured }: HourProps) {
  const sums = hours.map(({ sync, client }) => sync + client);
  return (
    <Card id="fleet-calls" title="Calls per hour">
      <TimeChart
        summary={`Calls to Airtable per hour: ${inDigits(total(sums))} in all. The same numbers are in the table below.`}
        bars={hours.map(
          ({ at, sync, client }): ChartBar => ({
            parts: [
              { value: sync, class: "bar" },
              { value: client, class: "bar client" },
            ],
            title: `${timeOf(at, "24h")}: sync ${counted(sync, "call")}, apps and consoles ${counted(client, "call")}`,
            at,
          }),
        )}
        foot={footOf(hours)}
      />
      {total(sums) === 0 ? (
        <p class="muted small">{isMeasured ? "No calls in these hours." : COLLECTING}</p>
      ) : (
        <ChartKey keys={[{ text: "sync" }, { look: "client", text: "apps and consoles" }]} />
      )}
    </Card>
  );
}

function Outages({ hours, isMeasured }: HourProps) {
  const counts = hours.map(({ outages }) => outages);
  return (
    <Card id="fleet-outages" title="Bases with an outage">
      <TimeChart
        summary={`Bases with an outage per hour: at most ${Math.max(...counts)}. The same numbers are in the table below.`}
        bars={hours.map(
          ({ at, outages }): ChartBar => ({
            parts: [{ value: outages, class: "bar failed" }],
            title: outages > 0 ? `${timeOf(at, "24h")}: ${counted(outages, "base")}` : "",
            at,
          }),
        )}
        foot={footOf(hours)}
      />
      {total(counts) === 0 ? (
        <p class="muted small">{isMeasured ? "None in these hours." : COLLECTING}</p>
      ) : null}
    </Card>
  );
}

function Numbers({ hours }: Pick<ChartProps, "hours">) {
  return (
    <Table
      caption="Calls and outages, the latest hour first"
      onPhone="fit"
      rows={hours.toReversed()}
      columns={(column) => [
        column({ text: "From", isTime: true, class: "nowrap" }, ({ at }) => <Time at={at} form="bare" />),
        column({ text: "Sync", isNumber: true }, ({ sync }) => inDigits(sync)),
        column({ text: "Apps and consoles", isNumber: true }, ({ client }) => inDigits(client)),
        column({ text: "Outages", isNumber: true }, ({ outages }) => inDigits(outages)),
      ]}
    />
  );
}

function footOf(hours: FleetHour[]) {
  const [first, last] = [hours[0]!.at, hours.at(-1)!.at];
  return [
    <Time key="first" at={first} form="bare" />,
    <span key="last">
      <Time at={last} form="bare" />
      <Zone />
    </span>,
  ];
}

function total(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
