/** The log of syncs, with similar ones in one row. */
import type { SyncKind, SyncRun } from "../../core/control/bases";
import { statusOfError } from "../../core/control/status";
import { Badge, Card } from "../components";
import { Ago } from "../components/ago";
import { Table } from "../components/table";
import { formatDuration, inDigits } from "../format";

export const runKindLabels: Record<SyncKind, string> = {
  first: "First sync",
  rebuild: "Rebuild",
  sweep: "Full sync",
  rapid: "Rapid sync",
  live: "Live sync",
};

export function RunsPage({ runs, now }: { runs: SyncRun[]; now: Date }) {
  return (
    <Card id="runs" title={runs.length > 1 ? `The last ${inDigits(runs.length)} runs` : "Runs"}>
      {runs.length === 0 ? (
        <p class="muted">No sync has finished yet. Each sync will be listed here with its results.</p>
      ) : (
        <RunTable caption="Runs, newest first" runs={runs} now={now} />
      )}
    </Card>
  );
}

function RunTable({ caption, runs, now }: { caption: string; runs: SyncRun[]; now: Date }) {
  return (
    <Table
      caption={caption}
      head={[
        { text: "Kind" },
        { text: "Started" },
        { text: "Outcome" },
        { text: "Took", isNumber: true },
        { text: "Read", isNumber: true },
        { text: "Inserted", isNumber: true },
        { text: "Updated", isNumber: true },
        { text: "Deleted", isNumber: true },
        { text: "Requests", isNumber: true },
        { text: "Wait per request", isNumber: true },
      ]}
    >
      {runs.map((run) => (
        <tr key={run.id}>
          <th scope="row" class="nowrap">
            {runKindLabels[run.kind]}
            {run.syncs > 1 ? <span class="muted"> × {inDigits(run.syncs)}</span> : null}
          </th>
          <td class="nowrap">
            <Ago at={run.started_at} now={now} />
          </td>
          <td class="wrap">
            <Outcome run={run} />
          </td>
          <td class="number nowrap">{run.duration_ms === null ? "–" : formatDuration(run.duration_ms)}</td>
          <td class="number">{inDigits(run.seen)}</td>
          <td class="number">{inDigits(run.inserted)}</td>
          <td class="number">{inDigits(run.updated)}</td>
          <td class="number">{inDigits(run.deleted)}</td>
          <td class="number">{inDigits(run.requests)}</td>
          <td class="number nowrap">
            {run.requests === 0 ? "–" : formatDuration(run.wait_ms / run.requests)}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** The cause in a few words; what Airtable or a server answered is under Details. */
function Outcome({ run }: { run: SyncRun }) {
  if (run.error_code === null) return <Badge tone="green">Completed</Badge>;
  const { word, headline } = statusOfError(run.error_code);
  // It has read all other tables.
  const isPartial = run.completed_at !== null;
  const isYellow = isPartial || run.error_code === "budget_spent";
  return (
    <>
      <Badge tone={isYellow ? "yellow" : "red"}>{isPartial ? "Without some tables" : word}</Badge>
      <details class="small">
        <summary>Details</summary>
        {isPartial ? null : <p>{headline}</p>}
        <p class="muted">
          {run.error_message} <code>{run.error_code}</code>
        </p>
      </details>
    </>
  );
}
