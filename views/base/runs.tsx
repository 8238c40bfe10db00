/** The log of syncs, with similar ones in one row: a bar of changed rows for each, and the numbers. */

import type { SyncKind, SyncRun } from "../../core/control/bases";
import { statusOfError } from "../../core/control/status";
import { Ago, Badge, Card, ChartKey, Table, Time } from "../components";
import { fullScale, TimeChart } from "../components/time-chart";
import { counted, formatDuration, inDigits, timeText } from "../format";

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
        <>
          <RunBars runs={runs} />
          <RunTable runs={runs} now={now} />
        </>
      )}
    </Card>
  );
}

/** At least so many places for bars: few runs are not drawn as wide blocks. */
const LEAST_SLOTS = 40;

/** What a first sync or a rebuild writes would hide the changes of all others: its bar ends at the upper edge. */
function RunBars({ runs }: { runs: SyncRun[] }) {
  const usual = runs.filter(({ kind }) => kind !== "first" && kind !== "rebuild");
  const top = Math.max(1, ...(usual.some((run) => changesOf(run) > 0) ? usual : runs).map(changesOf));
  const changed = usual.filter((run) => changesOf(run) > 0).length;
  const failed = runs.filter(({ error_code: code }) => code !== null).length;
  const empty: null[] = Array(Math.max(0, LEAST_SLOTS - runs.length)).fill(null);
  return (
    <>
      <TimeChart
        summary={`Rows changed by each run: ${inDigits(changed)} of ${counted(usual.length, "later run")} changed rows, at most ${inDigits(top)}; ${inDigits(failed)} failed or left tables out. The numbers are in the table below.`}
        timeForm="minute"
        scale={fullScale(top)}
        bars={[...empty, ...runs.toReversed()].map((run) =>
          run === null
            ? { parts: [], title: "" }
            : {
                title: `${timeText.minute(run.started_at)}: ${runKindLabels[run.kind]}, ${run.error_code === null ? "" : `${statusOfError(run.error_code).word}, `}${inDigits(run.inserted)} inserted, ${inDigits(run.updated)} updated, ${inDigits(run.deleted)} deleted`,
                at: run.started_at,
                parts:
                  run.error_code === null
                    ? [{ value: changesOf(run), class: "bar" }]
                    : [{ value: Math.max(changesOf(run), top / 4), class: "bar failed" }],
              },
        )}
        foot={[<Time at={runs.at(-1)!.started_at} form="minute" />, "latest run"]}
      />
      <ChartKey
        keys={[
          { text: "rows inserted, updated and deleted" },
          ...(failed > 0 ? [{ look: "failed", text: "failed or left tables out" }] : []),
        ]}
      />
    </>
  );
}

function changesOf({ inserted, updated, deleted }: SyncRun): number {
  return inserted + updated + deleted;
}

function RunTable({ runs, now }: { runs: SyncRun[]; now: Date }) {
  return (
    <Table
      caption="Runs, newest first"
      onPhone="scroll"
      rows={runs}
      columns={(column) => [
        column({ text: "Kind", isHead: true, class: "nowrap" }, (run) => (
          <>
            {runKindLabels[run.kind]}
            {run.syncs > 1 ? <span class="muted"> × {inDigits(run.syncs)}</span> : null}
          </>
        )),
        column({ text: "Started", class: "nowrap" }, (run) => <Ago at={run.started_at} now={now} />),
        column({ text: "Outcome", class: "wrap" }, (run) => <Outcome run={run} />),
        column({ text: "Took", isNumber: true, class: "nowrap" }, (run) =>
          run.duration_ms === null ? "–" : formatDuration(run.duration_ms),
        ),
        column({ text: "Read", isNumber: true }, (run) => inDigits(run.seen)),
        column({ text: "Inserted", isNumber: true }, (run) => inDigits(run.inserted)),
        column({ text: "Updated", isNumber: true }, (run) => inDigits(run.updated)),
        column({ text: "Deleted", isNumber: true }, (run) => inDigits(run.deleted)),
        column({ text: "Requests", isNumber: true }, (run) => inDigits(run.requests)),
        column({ text: "Wait per request", isNumber: true, class: "nowrap" }, (run) =>
          run.requests === 0 ? "–" : formatDuration(run.wait_ms / run.requests),
        ),
      ]}
    />
  );
}

/** The cause in a few words; what Airtable or a server answered is under Details. */
function Outcome({ run }: { run: SyncRun }) {
  if (run.error_code === null) return <OutcomeBadge run={run} />;
  return (
    <>
      <OutcomeBadge run={run} />
      <details class="small">
        <summary>Details</summary>
        {run.completed_at ? null : <p>{statusOfError(run.error_code).headline}</p>}
        <p class="muted">
          {run.error_message} <code>{run.error_code}</code>
        </p>
      </details>
    </>
  );
}

/** The outcome in a word or two, with nothing that the source or a server has said. */
export function OutcomeBadge({ run: { error_code: code, completed_at } }: { run: SyncRun }) {
  if (code === null) return <Badge tone="green">Completed</Badge>;
  // It has read all other tables.
  if (completed_at) return <Badge tone="yellow">Without some tables</Badge>;
  return <Badge tone={code === "budget_spent" ? "yellow" : "red"}>{statusOfError(code).word}</Badge>;
}
