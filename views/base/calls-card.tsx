/** Calls to Airtable over time by sync, by clients and by the console, and who made those of clients. */

import type { BaseHistory, CallerCalls } from "../../core/control/history";
import { Card, ChartKey, Table, Time } from "../components";
import { type ChartBar, TimeChart } from "../components/time-chart";
import { counted, inDigits, monthDay } from "../format";
import { ChartEnd, formOf, timeOf } from "./lag-chart";

/** The purposes of calls: the same words everywhere. */
export const callKinds = [
  { kind: "sync", text: "Sync", class: "" },
  { kind: "client", text: "Your apps", class: "client" },
  { kind: "console", text: "Console", class: "console" },
] as const;

export function CallsCard({ history }: { history: BaseHistory }) {
  const { calls, callers, range } = history;
  const per = range === "1h" ? "minute" : range === "24h" ? "hour" : "day";
  const sums = calls.map((bucket) => callKinds.reduce((sum, { kind }) => sum + bucket[kind], 0));
  const total = sums.reduce((sum, one) => sum + one, 0);
  const totals = callKinds.map((one) => ({
    ...one,
    calls: calls.reduce((sum, bucket) => sum + bucket[one.kind], 0),
  }));
  // The last hour does not tell the console from other clients.
  const shown =
    range === "1h"
      ? totals
          .filter(({ kind }) => kind !== "console")
          .map((one) => (one.kind === "client" ? { ...one, text: "Your apps and the console" } : one))
      : totals.filter(({ kind, calls: many }) => kind !== "console" || many > 0);
  // Days are those of UTC, as Airtable counts its months.
  const name = (at: Date) => (per === "day" ? monthDay(at) : timeOf(at, "24h"));
  const when = (at: Date) => (per === "day" ? monthDay(at) : <Time at={at} form={formOf("24h")} />);
  return (
    <Card id="calls-card" title={`Calls per ${per}`}>
      <TimeChart
        summary={`Calls to Airtable per ${per}: ${inDigits(total)} in all. The same numbers are in the table below.`}
        bars={calls.map(
          (bucket, index): ChartBar => ({
            ...(per === "day" ? {} : { at: bucket.at }),
            parts: shown.map((one) => ({ value: bucket[one.kind], class: `bar ${one.class}`.trim() })),
            title:
              sums[index]! > 0
                ? `${name(bucket.at)}: ${shown.map((one) => `${one.text.toLowerCase()} ${counted(bucket[one.kind], "call")}`).join(", ")}`
                : "",
          }),
        )}
        foot={[when(calls[0]!.at), <ChartEnd key="end" />]}
      />
      <ChartKey
        keys={shown.map((one) => ({
          look: one.class,
          text: `${one.text.toLowerCase()} ${inDigits(one.calls)}`,
        }))}
      />
      {callers.length > 0 ? <Callers callers={callers} /> : null}
      <details>
        <summary>As a table</summary>
        <Table
          caption={`Calls per ${per}`}
          onPhone="fit"
          rows={calls.filter((_, index) => sums[index]! > 0).toReversed()}
          columns={(column) => [
            column(
              per === "day"
                ? { text: "Day (UTC)", class: "nowrap" }
                : { text: "From", isTime: true, class: "nowrap" },
              ({ at }) => when(at),
            ),
            ...shown.map(({ text, kind }) =>
              column({ text, isNumber: true }, (bucket) => inDigits(bucket[kind])),
            ),
          ]}
        />
      </details>
    </Card>
  );
}

function Callers({ callers }: { callers: CallerCalls[] }) {
  const total = callers.reduce((sum, { calls }) => sum + calls, 0);
  return (
    <Table
      caption="Calls of your apps by API key"
      onPhone="fit"
      rows={callers}
      columns={(column) => [
        column({ text: "API key", isHead: true }, nameOf),
        column({ text: "Calls", isNumber: true }, ({ calls }) => inDigits(calls)),
        column({ text: "Share", isNumber: true }, ({ calls }) => `${Math.round((100 * calls) / total)} %`),
      ]}
    />
  );
}

function nameOf({ kind, name }: CallerCalls) {
  if (kind === "own") return "The key of this base";
  return kind === "others" ? "Other keys" : <code>{name}</code>;
}
