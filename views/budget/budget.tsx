/** A call budget: whether this month's calls will last, and what they are used for. */
import type { Budget } from "../../core/control/budgets";
import { Note } from "../components";
import { BudgetBar } from "../components/budget-bar";
import { Table } from "../components/table";
import { counted, inDigits } from "../format";

/** The bar with its legend, and a sentence. */
export function BudgetPicture({ budget }: { budget: Budget }) {
  const { callsPerMonth, used, reserve, forecast } = budget;
  if (callsPerMonth === null) {
    return (
      <p>No cap: sync goes at full pace. {counted(used.sync + used.client, "call")} so far this month.</p>
    );
  }
  const spent = used.sync + used.client;
  return (
    <>
      <p class="budget-answer">
        <strong>{answerOf(budget)}</strong> {explanationOf(budget)}
      </p>
      <BudgetBar
        summary={`${inDigits(spent)} of ${inDigits(callsPerMonth)} calls used this month; about ${inDigits(forecast.calls)} by its end.`}
        cap={callsPerMonth}
        sync={used.sync}
        client={used.client}
        reserve={reserve}
        forecast={forecast.calls}
      />
      <dl class="figures three">
        <Figure kind="key" name="Used by sync" calls={used.sync} />
        <Figure kind="key client" name="Used by clients" calls={used.client} />
        <Figure kind="key kept" name="Kept for clients" calls={Math.max(0, reserve - used.client)} />
        <Figure kind="key left" name="Left for sync" calls={Math.floor(budget.left ?? 0)} />
        <Figure
          kind="key forecast"
          name="Forecast"
          calls={forecast.calls}
          note={`of ${inDigits(callsPerMonth)} by ${dayOf(forecast.at)}`}
        />
      </dl>
    </>
  );
}

/** The purposes of sync's calls, the largest first. */
export function CallsByKind({ budget }: { budget: Budget }) {
  const kinds = Object.entries(budget.used.byKind).toSorted(([, a], [, b]) => b - a);
  if (kinds.length === 0) return <p class="muted">Sync has not called the source this month.</p>;
  return (
    <Table
      caption="What sync's calls were for"
      onPhone="fit"
      head={[{ text: "For" }, { text: "Calls", isNumber: true }]}
    >
      {kinds.map(([kind, calls]) => (
        <tr key={kind}>
          <th scope="row">{kindWords[kind] ?? kind}</th>
          <td class="number">{inDigits(calls)}</td>
        </tr>
      ))}
    </Table>
  );
}

const kindWords: Record<string, string> = {
  payloads: "Asking what has changed",
  records: "Reading changed records",
  sweep: "Reading whole tables",
  schema: "Looking at tables and fields",
  freshness: "Comparing SQL with the source",
  hooks: "Keeping notifications alive",
};

function Figure(props: { kind: string; name: string; calls: number; note?: string }) {
  return (
    <div>
      <dt>
        <span class={props.kind} aria-hidden="true" /> {props.name}
      </dt>
      <dd>{inDigits(props.calls)}</dd>
      {props.note ? <dd class="muted small">{props.note}</dd> : null}
    </div>
  );
}

/** The source slows the workspace down: this affects every client, whatever Basetide does. */
export function Slowed({ slowed }: { slowed: Budget["slowed"] }) {
  if (!slowed) return null;
  return (
    <Note tone="warn" title="The source answers only two calls a second">
      {slowed.isCertain
        ? `The calls of its Team plan are used up: so it goes, for sync and clients alike, until ${dayOf(slowed.until)}.`
        : "It refuses more than that, as it does with a Team plan beyond its calls. We keep to it, and try again within the hour."}
    </Note>
  );
}

function answerOf({ state, forecast }: Budget): string {
  if (state === "over") return "This month's calls are used up.";
  if (state === "spent") return "Sync has used its part of this month's calls.";
  return forecast.endsInside ? "This month's calls will last." : "This month's calls may not last.";
}

function explanationOf({ state, endsAt, ratePerHour }: Budget): string {
  if (state === "over")
    return `Sync waits until ${dayOf(endsAt)}. Clients go on as long as the source answers them.`;
  if (state === "spent")
    return `It goes on on ${dayOf(endsAt)}; until then the rest is for clients, and SQL stays readable as it is.`;
  const rate = ratePerHour === null ? "" : `Each base may use ${paceOf(ratePerHour)} from now on`;
  return `${rate}; what is saved makes the rest of the month faster.`;
}

function paceOf(perHour: number): string {
  const isSlow = perHour < 10;
  const calls = isSlow ? perHour * 24 : perHour;
  return `about ${counted(Math.max(1, Math.round(calls)), "call")} ${isSlow ? "a day" : "an hour"}`;
}

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

/** `1 December`, UTC. */
export function dayOf(at: Date): string {
  return DAY.format(at);
}
