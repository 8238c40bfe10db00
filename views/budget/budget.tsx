/** A call budget: whether this month's calls will last, and what they are used for. */
import { type Budget, FORECAST_DAYS } from "../../core/control/budgets";
import { Figure, Note, Table } from "../components";
import { BudgetBar } from "../components/budget-bar";
import { counted, inDigits } from "../format";

/** The bar with its legend, and a sentence. */
export function BudgetPicture({ budget }: { budget: Budget }) {
  const { callsPerMonth, used, reserve, forecast } = budget;
  if (callsPerMonth === null) {
    return (
      <p>No cap: sync runs at full speed. {counted(used.sync + used.client, "call")} so far this month.</p>
    );
  }
  return (
    <>
      <BudgetAnswer budget={budget}>{explanationOf(budget)}</BudgetAnswer>
      <dl class="figures three">
        <Calls kind="key" name="Used by sync" calls={used.sync} />
        <Calls kind="key client" name="Used by your apps" calls={used.client - used.console} />
        {used.console > 0 ? (
          <Calls kind="key console" name="Used by the console" calls={used.console} />
        ) : null}
        <Calls kind="key kept" name="Reserved for your apps" calls={Math.max(0, reserve - used.client)} />
        <Calls kind="key left" name="Left for sync" calls={Math.floor(budget.left ?? 0)} />
        {forecast.calls === null ? null : (
          <Calls
            kind="key forecast"
            name="Forecast"
            calls={forecast.calls}
            note={`of ${inDigits(callsPerMonth)} by ${dayOf(forecast.at)}`}
          />
        )}
      </dl>
      {forecast.missing === null ? null : <p class="muted small">{noForecast[forecast.missing]}</p>}
    </>
  );
}

/** Whether the calls of a budget with a cap will last, as a sentence and a bar. @param props.children more about it */
export function BudgetAnswer({ budget, children }: { budget: Budget; children?: string }) {
  const { used, reserve, forecast } = budget;
  const cap = budget.callsPerMonth ?? 0;
  const spent = used.sync + used.client;
  return (
    <>
      <p class="budget-answer">
        <strong>{answerOf(budget)}</strong> {children}
      </p>
      <BudgetBar
        summary={`${inDigits(spent)} of ${inDigits(cap)} calls used this month${forecast.calls === null ? "" : `; about ${inDigits(forecast.calls)} forecast by the end of the month`}.`}
        cap={cap}
        sync={used.sync}
        client={used.client}
        console={used.console}
        reserve={reserve}
        forecast={forecast.calls}
      />
    </>
  );
}

const noForecast = {
  history: `Not enough history for a forecast yet: it needs ${FORECAST_DAYS} whole days with the same bases.`,
  regularity: "No forecast: the number of calls differs too much from day to day.",
};

/** The purposes of sync's calls, the largest first. */
export function CallsByKind({ budget }: { budget: Budget }) {
  const kinds = Object.entries(budget.used.byKind).toSorted(([, a], [, b]) => b - a);
  if (kinds.length === 0) return <p class="muted">Sync has not called Airtable this month.</p>;
  return (
    <Table
      caption="Sync's calls by purpose"
      onPhone="fit"
      rows={kinds}
      columns={(column) => [
        column({ text: "Purpose", isHead: true }, ([kind]) => kindWords[kind] ?? kind),
        column({ text: "Calls", isNumber: true }, ([, calls]) => inDigits(calls)),
      ]}
    />
  );
}

const kindWords: Record<string, string> = {
  payloads: "Checking for changes",
  records: "Reading changed records",
  sweep: "Reading whole tables",
  schema: "Reading the schema",
  freshness: "Comparing the database with Airtable",
  webhooks: "Renewing webhooks",
};

/** A number of calls, with its color in the bar. */
function Calls(props: { kind: string; name: string; calls: number; note?: string }) {
  const name = (
    <>
      <span class={props.kind} aria-hidden="true" /> {props.name}
    </>
  );
  return (
    <Figure name={name} note={props.note}>
      {inDigits(props.calls)}
    </Figure>
  );
}

/** The source slows the workspace down: this affects every client, whatever Basetide does. */
export function Slowed({ slowed }: { slowed: Budget["slowed"] }) {
  if (!slowed) return null;
  return (
    <Note tone="warn" title="Airtable answers only two calls per second">
      {slowed.isCertain
        ? `The workspace's Team plan has used up its calls. This limit applies to sync and to your apps until ${dayOf(slowed.until)}.`
        : "Airtable refuses more than that, as it does when a Team plan has used up its calls. We keep to this limit and try a faster pace again within the hour."}
    </Note>
  );
}

function answerOf({ state, forecast }: Budget): string {
  if (state === "over") return "This month's calls are used up.";
  if (state === "spent") return "Sync has used its share of this month's calls.";
  if (forecast.endsInside === null) return "Sync keeps within this month's calls.";
  return forecast.endsInside ? "This month's calls will last." : "This month's calls may not last.";
}

/** The sentence after the answer: when syncing resumes, or how fast a base may sync. */
export function explanationOf({
  state,
  endsAt,
  ratePerHour,
}: Pick<Budget, "state" | "endsAt" | "ratePerHour">): string {
  if (state === "over")
    return `Syncing resumes on ${dayOf(endsAt)}. Your apps can keep calling as long as Airtable answers them.`;
  if (state === "spent")
    return `Syncing resumes on ${dayOf(endsAt)}. Remaining calls are reserved for your apps, and your data stays queryable.`;
  if (ratePerHour === null) return "Unused calls speed up the rest of the month.";
  return `Each base may use ${paceOf(ratePerHour)} from now on; unused calls speed up the rest of the month.`;
}

function paceOf(perHour: number): string {
  const isSlow = perHour < 10;
  const calls = isSlow ? perHour * 24 : perHour;
  return `about ${counted(Math.max(1, Math.round(calls)), "call")} ${isSlow ? "a day" : "an hour"}`;
}

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

/** `1 December`, UTC. */
function dayOf(at: Date): string {
  return DAY.format(at);
}
