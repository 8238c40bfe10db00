/** The freshness of a base over an hour, a day or a month: lag, calls, changed rows, issues. */

import type { Base } from "../../core/control/bases";
import { type BaseHistory, type HistoryRange, historyRanges } from "../../core/control/history";
import { isLive, statusOf } from "../../core/control/status";
import { Card, ChartKey, Tabs, Time } from "../components";
import { type ChartBar, TimeChart } from "../components/time-chart";
import { counted, inDigits } from "../format";
import { CallsCard } from "./calls-card";
import { ChartEnd, footOf, formOf, LagChart, LagLegend, LagTable, lagSummary, timeOf } from "./lag-chart";
import { LiveReads } from "./live-mode";

export function FreshnessPage({ base, history, now }: { base: Base; history: BaseHistory; now: Date }) {
  return (
    <>
      <RangeChoice baseId={base.id} range={history.range} />
      <Card id="lag-card" title="Lag">
        <p class="muted">
          How old the data in the database was. {lagSummary(history)} It is empty where nothing was synced.
        </p>
        <LagChart history={history} />
        <LagLegend history={history} />
        <LagTable history={history} />
      </Card>
      <div class="pair">
        <CallsCard history={history} />
        <ChangedRows history={history} />
      </div>
      {history.issues.some(({ count }) => count !== null) ? <IssueCounts history={history} /> : null}
      {isLive(base) && statusOf(base, now).isCurrent ? <LiveReads base={base} now={now} /> : null}
    </>
  );
}

function RangeChoice({ baseId, range }: { baseId: string; range: HistoryRange }) {
  const pathOf = (name: string) => `/bases/${baseId}/freshness?range=${name}`;
  return (
    <Tabs
      look="periods"
      label="Period"
      current={pathOf(range)}
      tabs={Object.entries(historyRanges).map(([name, { text }]) => ({ href: pathOf(name), text }))}
    />
  );
}

function ChangedRows({ history }: { history: BaseHistory }) {
  const { lag, range } = history;
  const total = lag.reduce((sum, { changed }) => sum + changed, 0);
  return (
    <Card id="changed-card" title="Rows changed">
      <TimeChart
        summary={`Rows inserted, updated and deleted: ${inDigits(total)} in all. The numbers are in the table of lag.`}
        bars={lag.map(
          ({ at, changed }): ChartBar => ({
            parts: [{ value: changed, class: "bar" }],
            title: changed > 0 ? `${timeOf(at, range)}: ${counted(changed, "row")}` : "",
            at,
          }),
        )}
        timeForm={formOf(range)}
        foot={footOf(history)}
      />
      <ChartKey keys={[{ text: `inserted, updated and deleted: ${inDigits(total)}` }]} />
    </Card>
  );
}

function IssueCounts({ history }: { history: BaseHistory }) {
  const { issues, range } = history;
  const most = Math.max(...issues.map(({ count }) => count ?? 0));
  return (
    <Card id="issue-counts-card" title="Issues">
      {most === 0 ? (
        <p class="muted">None: every value fitted its column.</p>
      ) : (
        <TimeChart
          summary={`Cells that did not fit their column: at most ${inDigits(most)}, now ${inDigits(issues.at(-1)!.count ?? 0)}.`}
          bars={issues.map(
            ({ at, count }): ChartBar => ({
              parts: [{ value: count ?? 0, class: "bar issue" }],
              title: count === null ? "" : `${timeOf(at, range)}: ${counted(count, "issue")}`,
              at,
            }),
          )}
          timeForm={formOf(range)}
          foot={[<Time at={issues[0]!.at} form={formOf(range)} />, <ChartEnd />]}
        />
      )}
    </Card>
  );
}
