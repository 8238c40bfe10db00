/** The calls of all bases of an account by day and by purpose, whether their plan has a cap or not. */

import type { ComponentChildren } from "preact";
import type { AccountCalls, CallsOfBase } from "../../core/control/history";
import { callKinds } from "../base/calls-card";
import { ChartEnd } from "../base/lag-chart";
import { Card, ChartKey, Link, Table } from "../components";
import { type ChartBar, TimeChart } from "../components/time-chart";
import { counted, inDigits, monthDay } from "../format";

export function AccountCallsCard({ calls }: { calls: AccountCalls }) {
  const { days, bases } = calls;
  const sums = days.map((day) => day.sync + day.client + day.console);
  const total = sums.reduce((sum, one) => sum + one, 0);
  if (bases.length === 0) {
    return (
      <Card id="account-calls" title="Calls per day">
        <p class="muted">
          No base is connected, so nothing calls Airtable. <Link href="/new">Connect a base</Link>
        </p>
      </Card>
    );
  }
  return (
    <Card id="account-calls" title="Calls per day">
      {total === 0 ? (
        <p class="muted">No calls to Airtable yet.</p>
      ) : (
        <>
          <TimeChart
            summary={`Calls to Airtable per day (UTC), the last ${days.length} days: ${inDigits(total)} in all. The same numbers are in the table below.`}
            bars={days.map(
              (day, index): ChartBar => ({
                parts: callKinds.map((one) => ({ value: day[one.kind], class: `bar ${one.class}`.trim() })),
                title:
                  sums[index]! > 0
                    ? `${monthDay(day.at)}: ${callKinds.map((one) => `${one.text.toLowerCase()} ${counted(day[one.kind], "call")}`).join(", ")}`
                    : "",
              }),
            )}
            foot={[monthDay(days[0]!.at), <ChartEnd key="end" />]}
          />
          <ChartKey keys={callKinds.map((one) => ({ look: one.class, text: one.text.toLowerCase() }))} />
        </>
      )}
      <CallsTable
        caption={`Calls by base, the last ${days.length} days`}
        first="Base"
        rows={bases.map((base) => ({
          name: (
            <a href={`/bases/${base.id}/freshness?range=30d#calls-card`}>
              <bdi>{base.name}</bdi>
            </a>
          ),
          calls: base.total,
        }))}
      />
      <details hidden={total === 0}>
        <summary>By day and base</summary>
        <CallsTable
          caption="Calls by day and base, the latest day first"
          first="Day (UTC), base"
          rows={days
            .map(({ at }, index) => ({ at, index }))
            .toReversed()
            .flatMap(({ at, index }) =>
              bases.map((base) => ({
                name: (
                  <>
                    <span class="nowrap">{monthDay(at)}</span> <bdi>{base.name}</bdi>
                  </>
                ),
                calls: base.days[index]!,
              })),
            )
            .filter(({ calls: of }) => of.sync + of.client + of.console > 0)}
        />
      </details>
    </Card>
  );
}

function CallsTable(props: {
  caption: string;
  first: string;
  rows: { name: ComponentChildren; calls: CallsOfBase["total"] }[];
}) {
  return (
    <Table
      caption={props.caption}
      onPhone="fit"
      rows={props.rows}
      columns={(column) => [
        column({ text: props.first, isHead: true, class: "wrap" }, ({ name }) => name),
        ...callKinds.map(({ text, kind }) =>
          column({ text, isNumber: true }, ({ calls }) => inDigits(calls[kind])),
        ),
        column({ text: "Total", isNumber: true }, ({ calls }) =>
          inDigits(calls.sync + calls.client + calls.console),
        ),
      ]}
    />
  );
}
