/** The age of a base's data over time: median and maximum per bucket, with the periods in which it was not current. */

import { historyRanges, type LagBucket, type LagHistory, type Period } from "../../core/control/history";
import { ButtonLink, Card, ChartKey, Table } from "../components";
import { Time, Zone } from "../components/time";
import { type ChartBar, type ChartSpan, durationScale, TimeChart } from "../components/time-chart";
import { counted, formatDuration, timeText } from "../format";

/** Periods that are listed by name, the latest first. */
const LISTED = 8;

const periodNames: Record<Period["kind"], string> = {
  outage: "Outage",
  delay: "Delay",
  pause: "Pause",
  budget: "Call budget",
};

/** On the overview: a small chart of the last hour, day or month, and the way to more. */
export function LagCard({ baseId, history }: { baseId: string; history: LagHistory }) {
  return (
    <Card
      id="lag-card"
      title={`Lag, last ${historyRanges[history.range].text.replace(/^1 /, "")}`}
      actions={
        <ButtonLink isSmall kind="quiet" href={`/bases/${baseId}/freshness`}>
          Freshness
        </ButtonLink>
      }
    >
      <LagChart history={history} numbersAt="on the page Freshness" />
      <p class="small">{lagSummary(history)}</p>
      <LagLegend history={history} most={1} />
    </Card>
  );
}

export function LagChart(props: { history: LagHistory; numbersAt?: string }) {
  const { history, numbersAt = "in the table below" } = props;
  const { lag, periods, markers, range, now } = history;
  const placeOf = scaleOfTime(history);
  const values = lag.flatMap(({ p50Ms, maxMs }) => [p50Ms ?? 0, maxMs ?? 0]).filter((value) => value > 0);
  const spans = periods.map(
    (period): ChartSpan => ({
      from: placeOf(period.beganAt),
      to: placeOf(period.endedAt ?? now),
      class: period.kind,
      title: describe(period, now),
      times: [period.beganAt, ...(period.endedAt ? [period.endedAt] : [])],
    }),
  );
  return (
    <TimeChart
      summary={`Lag, the last ${historyRanges[range].text}. ${lagSummary(history)} The same numbers are ${numbersAt}.`}
      form="range"
      scale={durationScale(values)}
      spans={spans}
      timeForm={formOf(range)}
      markers={markers.map(({ at, text }) => ({
        at: placeOf(at),
        title: `${timeOf(at, range)}: ${text}`,
        times: [at],
      }))}
      bars={lag.map((bucket) => barOf(bucket, range))}
      foot={footOf(history)}
    />
  );
}

function barOf({ at, p50Ms, maxMs }: LagBucket, range: LagHistory["range"]): ChartBar {
  if (p50Ms === null || maxMs === null) return { parts: [], title: "" };
  return {
    parts: [
      { value: p50Ms, class: "lag-p50" },
      { value: maxMs, class: "lag-max" },
    ],
    title: `${timeOf(at, range)}: median ${formatDuration(p50Ms)}, at most ${formatDuration(maxMs)}`,
    at,
  };
}

/** `Median 0.4 s, at most 12 s.` */
export function lagSummary({ lag, silence }: Pick<LagHistory, "lag" | "silence">): string {
  const medians = lag.flatMap(({ p50Ms }) => p50Ms ?? []).toSorted((a, b) => a - b);
  if (medians.length === 0) return silences[silence];
  const most = Math.max(...lag.map(({ maxMs }) => maxMs ?? 0));
  return `Median ${formatDuration(medians[Math.floor(medians.length / 2)]!)}, at most ${formatDuration(most)}.`;
}

const silences: Record<LagHistory["silence"], string> = {
  unchanged: "Nothing changed in this time.",
  new: "Nothing has changed since the first sync.",
  no_data: "No lag yet: the first sync has not finished.",
  not_read: "Nothing was measured in this time.",
};

/** What the colors mean, and the latest periods and markers by name. */
export function LagLegend({ history, most = LISTED }: { history: LagHistory; most?: number }) {
  const { periods, markers, range, now } = history;
  const shown = periods.toReversed().slice(0, most);
  return (
    <>
      <ChartKey
        keys={[
          { look: "lag-p50", text: "median" },
          { look: "lag-max", text: "maximum" },
          ...[...new Set(periods.map(({ kind }) => kind))].map((kind) => ({
            look: `span ${kind}`,
            text: periodNames[kind].toLowerCase(),
          })),
          ...(markers.length > 0 ? [{ look: "marker", text: "schema change or rebuild" }] : []),
        ]}
      />
      {shown.length > 0 ? (
        <ul class="log small">
          {shown.map((period) => (
            <li key={period.beganAt.toISOString()}>
              <span class="nowrap">
                <span class={`key span ${period.kind}`} aria-hidden="true" /> {titleOf(period)}
              </span>{" "}
              <span class="muted">
                <Span period={period} range={range} now={now} />
              </span>
            </li>
          ))}
        </ul>
      ) : null}
      {periods.length > most ? (
        <p class="small muted">{counted(periods.length - most, "earlier period")} not listed.</p>
      ) : null}
    </>
  );
}

/** The numbers of the chart, the latest first, without empty buckets. */
export function LagTable({ history }: { history: LagHistory }) {
  const { range } = history;
  const rows = history.lag.toReversed().filter(({ p50Ms, changed }) => p50Ms !== null || changed > 0);
  return (
    <details>
      <summary>As a table</summary>
      <Table
        caption={`Lag, the last ${historyRanges[range].text}`}
        onPhone="fit"
        rows={rows}
        columns={(column) => [
          column({ text: "From", isTime: true, class: "nowrap" }, ({ at }) => (
            <Time at={at} form={formOf(range)} />
          )),
          column({ text: "Median", isNumber: true }, ({ p50Ms }) =>
            p50Ms === null ? "–" : formatDuration(p50Ms),
          ),
          column({ text: "Maximum", isNumber: true }, ({ maxMs }) =>
            maxMs === null ? "–" : formatDuration(maxMs),
          ),
          column({ text: "Rows changed", isNumber: true }, ({ changed }) => changed),
        ]}
      />
    </details>
  );
}

/** From a time to its place in the chart, 0 to 1. */
function scaleOfTime({ lag, range }: LagHistory): (at: Date) => number {
  const fromMs = lag[0]!.at.getTime();
  const lengthMs = historyRanges[range].bucketMs * lag.length;
  return (at) => Math.min(1, Math.max(0, (at.getTime() - fromMs) / lengthMs));
}

export function footOf({ lag, range }: Pick<LagHistory, "lag" | "range">) {
  const form = formOf(range);
  return [
    <Time at={lag[0]!.at} form={form} />,
    <Time at={lag[Math.floor(lag.length / 2)]!.at} form={form} />,
    <ChartEnd />,
  ];
}

/** The right end of a chart. */
export function ChartEnd() {
  return (
    <>
      now
      <Zone />
    </>
  );
}

/** `18:42` within a day, `21 Nov 18:00` beyond. */
export function formOf(range: LagHistory["range"]): "bare" | "bareDay" {
  return range === "30d" ? "bareDay" : "bare";
}

export function timeOf(at: Date, range: LagHistory["range"]): string {
  return timeText[formOf(range)](at);
}

function describe(period: Period, now: Date): string {
  const { beganAt, endedAt } = period;
  const [from, to] = [beganAt, endedAt].map((at) => at && timeText.bareDay(at));
  const when = to ? `${from} to ${to} UTC` : `since ${from} UTC`;
  return `${titleOf(period)}, ${when}, ${lasted(period, now)}`;
}

/** `Outage: Key rejected`, `Paused`. */
function titleOf({ kind, label }: Period): string {
  return label.startsWith(periodNames[kind]) ? label : `${periodNames[kind]}: ${label}`;
}

function Span({ period, range, now }: { period: Period; range: LagHistory["range"]; now: Date }) {
  const { beganAt, endedAt } = period;
  const form = formOf(range);
  return (
    <>
      {endedAt ? null : "since "}
      <Time at={beganAt} form={form} />
      {endedAt ? (
        <>
          {" to "}
          <Time at={endedAt} form={form} />
        </>
      ) : null}
      <Zone />, {endedAt ? null : "for "}
      {lasted(period, now)}
    </>
  );
}

function lasted({ beganAt, endedAt }: Period, now: Date): string {
  return formatDuration((endedAt ?? now).getTime() - beganAt.getTime());
}
