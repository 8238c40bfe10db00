/** What a plan means for the base that is being connected: a sentence about each choice, and all of them in a table. */
import type { CallEstimate } from "../../core/control/budgets";
import { Table } from "../components/table";
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
      head={[
        { text: "Plan" },
        { text: "Calls a month", isNumber: true },
        { text: "First sync", isNumber: true },
        { text: "Then, a day", isNumber: true },
        { text: "Full check every", isNumber: true },
      ]}
    >
      {rows.map(({ value, name, cost }) => (
        <tr key={value}>
          <th scope="row">{name}</th>
          <td class="number">{cost.callsPerMonth === null ? "no cap" : inDigits(cost.callsPerMonth)}</td>
          <td class={cost.isFirstSyncWithin ? "number" : "number over"}>
            {cost.isKnown ? "about" : "from"} {aboutDigits(cost.firstSync)} calls
          </td>
          <td class="number">{perDay(cost)}</td>
          <td class="number">{roughly(cost.fullCheckMs)}</td>
        </tr>
      ))}
    </Table>
  );
}

function perDay({ callsPerMonth, quietPerDay, busyPerDay }: PlanCost): string {
  if (callsPerMonth !== null || quietPerDay === busyPerDay) return `up to ${aboutDigits(busyPerDay)} calls`;
  return `${aboutDigits(quietPerDay)} to ${aboutDigits(busyPerDay)} calls`;
}
