/** The log of syncs, with similar ones in one row. */
import type { SyncKind, SyncRun } from "../../core/control/bases";
import { Card } from "../components";
import { Ago } from "../components/ago";
import { Table } from "../components/table";
import { formatElapsed, inDigits } from "../format";

export const runKindLabels: Record<SyncKind, string> = {
  first: "first sync",
  rebuild: "rebuild",
  sweep: "full sync",
  rapid: "rapid sync",
  live: "live sync",
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
      onPhone="scroll"
      head={[
        { text: "Started" },
        { text: "Kind" },
        { text: "Syncs", isNumber: true },
        { text: "Took", isNumber: true },
        { text: "Records read", isNumber: true },
        { text: "Inserted", isNumber: true },
        { text: "Updated", isNumber: true },
        { text: "Deleted", isNumber: true },
        { text: "Requests", isNumber: true },
        { text: "Waited", isNumber: true },
        { text: "Outcome" },
      ]}
    >
      {runs.map((run) => (
        <tr key={run.id}>
          <td class="nowrap">
            <Ago at={run.started_at} now={now} />
          </td>
          <td class="nowrap">{runKindLabels[run.kind]}</td>
          <td class="number">{inDigits(run.syncs)}</td>
          <td class="number nowrap">{run.duration_ms === null ? "–" : formatElapsed(run.duration_ms)}</td>
          <td class="number">{inDigits(run.seen)}</td>
          <td class="number">{inDigits(run.inserted)}</td>
          <td class="number">{inDigits(run.updated)}</td>
          <td class="number">{inDigits(run.deleted)}</td>
          <td class="number">{inDigits(run.requests)}</td>
          <td class="number nowrap">{formatElapsed(run.wait_ms)}</td>
          <td class="wrap">
            {run.error_code === null ? (
              "completed"
            ) : (
              <>
                {run.error_message ?? "failed"} <code class="muted">{run.error_code}</code>
              </>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}
