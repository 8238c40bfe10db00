/** What a plan means for the base that is being connected: a sentence about each choice, and all of them in a table. */

import type { CallEstimate } from "../../core/control/budgets";
import { Table } from "../components";
import { aboutDigits, inDigits, roughly } from "../format";

interface PlanCost extends CallEstimate {
  /** Null: no cap. */
  callsPerMonth: number | null;
  /** False if the base may have many more records than were counted. */
  isKnown: boolean;
}

/** By the value of the choice. */
export type PlanCosts = ReadonlyMap<string, PlanCost>;

/** `Uses at most 2,600 of 100,000 calls a day …`; nothing if the size of the base is unknown. */
export function PlanSentence({ cost }: { cost: PlanCost | undefined }) {
  if (!cost) return null;
  const { callsPerMonth, firstSync, isFirstSyncWithin, fullCheckMs } = cost;
  if (callsPerMonth === null) {
    return <>Full speed, without a cap on calls; a full check every {roughly(fullCheckMs)}.</>;
  }
  if (!isFirstSyncWithin) {
    return (
      <strong class="over">
        Reading this base once takes about {aboutDigits(firstSync)} calls, more than are left this month. The
        first sync would stop before its end.
      </strong>
    );
  }
  return (
    <>
      Paced to last the month: up to {aboutDigits(cost.busyPerDay)} calls a day of {inDigits(callsPerMonth)} a
      month, and a full check every {roughly(fullCheckMs)}.
    </>
  );
}

export function PlanTable({ costs, names }: { costs: PlanCosts; names: ReadonlyMap<string, string> }) {
  const rows = [...names].flatMap(([value, name]) => {
    const cost = costs.get(value);
    return cost ? [{ value, name, cost }] : [];
  });
  return (
    <Table
      caption="What each plan means for this base"
      rows={rows}
      columns={(column) => [
        column({ text: "Plan", isHead: true }, ({ name }) => name),
        column({ text: "Calls a month", isNumber: true }, ({ cost }) =>
          cost.callsPerMonth === null ? "no cap" : inDigits(cost.callsPerMonth),
        ),
        column(
          {
            text: "First sync",
            isNumber: true,
            class: ({ cost }) => (cost.isFirstSyncWithin ? undefined : "over"),
          },
          ({ cost }) => (
            <>
              {cost.isKnown ? "about" : "from"} {aboutDigits(cost.firstSync)} calls
            </>
          ),
        ),
        column({ text: "Then, a day", isNumber: true }, ({ cost }) => perDay(cost)),
        column({ text: "Full check every", isNumber: true }, ({ cost }) => roughly(cost.fullCheckMs)),
      ]}
    />
  );
}

function perDay({ callsPerMonth, quietPerDay, busyPerDay }: PlanCost): string {
  if (callsPerMonth !== null || quietPerDay === busyPerDay) return `up to ${aboutDigits(busyPerDay)} calls`;
  return `${aboutDigits(quietPerDay)} to ${aboutDigits(busyPerDay)} calls`;
}
