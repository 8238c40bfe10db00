/** The log of syncs: what each did, those that were alike in one row. */
import type { SyncRun } from "../../core/control";
import { Card } from "../components";
import { Ago } from "../components/ago";
import { Table } from "../components/table";
import { inDigits, inWords } from "../format";

export function RunsPage({ runs, now }: { runs: SyncRun[]; now: Date }) {
  return (
    <Card id="runs" title={`The last ${inDigits(runs.length)} runs`}>
      {runs.length === 0 ? (
        <p class="muted">No sync has ended yet.</p>
      ) : (
        <RunTable caption="Runs, the newest first" runs={runs} now={now} />
      )}
    </Card>
  );
}

export function RunTable({ caption, runs, now }: { caption: string; runs: SyncRun[]; now: Date }) {
  return (
    <Table
      caption={caption}
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
          <td>{run.kind}</td>
          <td class="number">{inDigits(run.syncs)}</td>
          <td class="number nowrap">{run.duration_ms === null ? "–" : inWords(run.duration_ms)}</td>
          <td class="number">{inDigits(run.seen)}</td>
          <td class="number">{inDigits(run.inserted)}</td>
          <td class="number">{inDigits(run.updated)}</td>
          <td class="number">{inDigits(run.deleted)}</td>
          <td class="number">{inDigits(run.requests)}</td>
          <td class="number nowrap">{inWords(run.wait_ms)}</td>
          <td>{run.error_code === null ? "completed" : `${run.error_code}: ${run.error_message ?? ""}`}</td>
        </tr>
      ))}
    </Table>
  );
}
