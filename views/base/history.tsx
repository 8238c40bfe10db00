/** The last syncs as a chart and as a table: the duration and kind of each, and failures. */
import type { SyncRun } from "../../core/control/bases";
import { Card } from "../components";
import { Ago } from "../components/ago";
import { Bars } from "../components/bars";
import { Table } from "../components/table";
import { clock, counted, formatElapsed, inDigits, inUtc } from "../format";
import { runKindLabels } from "./runs";

/** Rows of the log in the chart: each is one sync, or similar ones of up to an hour. */
export const SHOWN_RUNS = 60;
/** With few syncs, the bars stay narrow. */
const MIN_SLOTS = 24;

export function History({ runs, now }: { runs: SyncRun[]; now: Date }) {
  const shown = runs.slice(0, SHOWN_RUNS);
  const completed = shown.filter((run) => run.duration_ms !== null);
  // A sync of another kind than usual, such as the first sync of a live base, says nothing about the usual duration.
  const kind = usualKind(completed);
  const usual = completed.filter((run) => run.kind === kind);
  const usualSyncs = usual.reduce((sum, run) => sum + run.syncs, 0);
  const totalMs = usual.reduce((sum, run) => sum + (run.duration_ms ?? 0) * run.syncs, 0);
  const meanMs = usualSyncs === 0 ? undefined : totalMs / usualSyncs;
  const longestMs = Math.max(0, ...usual.map((run) => run.longest_ms ?? 0));
  const highestMs = Math.max(0, ...usual.map((run) => run.duration_ms ?? 0));
  const failed = shown.filter((run) => run.error_code !== null).length;
  const syncs = shown.reduce((sum, run) => sum + run.syncs, 0);
  if (shown.length === 0) {
    return (
      <Card id="history-card" title="Sync time">
        <p class="muted">The first sync has not finished yet.</p>
      </Card>
    );
  }
  const facts = [
    syncs === 1 ? "The last sync" : `The last ${counted(syncs, "sync")}`,
    meanMs === undefined ? "" : `${formatElapsed(meanMs)}${usualSyncs === 1 ? "" : " on average"}`,
    usualSyncs < 2 ? "" : `${formatElapsed(longestMs)} at most`,
    failed === 0
      ? ""
      : `${syncs === 1 ? "" : failed === shown.length ? "all " : `${inDigits(failed)} `}failed`,
  ]
    .filter(Boolean)
    .join(", ");
  const isOther = completed.some((run) => run.kind !== kind);
  return (
    <Card id="history-card" title="Sync time">
      <div class="chart">
        <span class="chart-top small muted" aria-hidden="true">
          {completed.length === 0 ? "no sync has completed" : formatElapsed(highestMs)}
        </span>
        <Bars
          summary={`Sync time. ${facts}. The table below lists each sync.`}
          slots={Math.max(MIN_SLOTS, shown.length)}
          top={highestMs || 1}
          line={meanMs}
          bars={shown.toReversed().map((run) => ({
            key: run.id,
            title: titleOf(run),
            parts: [
              run.error_code === null
                ? { value: run.duration_ms ?? 0, class: run.kind === kind ? "bar" : "bar other" }
                : { value: highestMs || 1, class: "bar failed" },
            ],
          }))}
        />
        <p class="chart-foot small muted" aria-hidden="true">
          <span>{clock(shown.at(-1)!.started_at)}</span>
          <span>{clock(shown[0]!.started_at)} UTC</span>
        </p>
      </div>
      <p class="small muted">
        {facts}.{isOther ? " Grey bars are syncs of another kind." : ""}
        {shown.some((run) => run.kind === "live")
          ? " In live mode, each bar is one batch of changes or one full check in the background."
          : ""}
      </p>
      <details>
        <summary>As a table</summary>
        <RunTimes runs={shown} now={now} />
      </details>
    </Card>
  );
}

/** The most frequent kind: sweeps, rapid cycles, or batches of live mode. */
function usualKind(completed: SyncRun[]): SyncRun["kind"] | undefined {
  const counts = new Map<SyncRun["kind"], number>();
  for (const { kind } of completed) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0];
}

function RunTimes({ runs, now }: { runs: SyncRun[]; now: Date }) {
  return (
    <Table
      caption="Latest syncs"
      onPhone="scroll"
      head={[
        { text: "Started" },
        { text: "Kind" },
        { text: "Syncs", isNumber: true },
        { text: "Took", isNumber: true },
        { text: "Longest", isNumber: true },
      ]}
    >
      {runs.map((run) => (
        <tr key={run.id}>
          <td>
            <Ago at={run.started_at} now={now} />
          </td>
          <td>{run.error_code === null ? runKindLabels[run.kind] : `${runKindLabels[run.kind]}, failed`}</td>
          <td class="number">{run.syncs}</td>
          <td class="number">{run.duration_ms === null ? "–" : formatElapsed(run.duration_ms)}</td>
          <td class="number">{run.longest_ms === null ? "–" : formatElapsed(run.longest_ms)}</td>
        </tr>
      ))}
    </Table>
  );
}

function titleOf(run: SyncRun): string {
  const what = run.error_code === null ? formatElapsed(run.duration_ms ?? 0) : `failed, ${run.error_code}`;
  const times =
    run.syncs > 1
      ? `${counted(run.syncs, "sync")} (${runKindLabels[run.kind]}), on average `
      : `${runKindLabels[run.kind]}, `;
  return `${inUtc(run.started_at)}: ${times}${what}`;
}
