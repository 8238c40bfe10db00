/**
 * The progress of a first sync or a rebuild: what was read, and which tables can be queried already. Each table is
 * announced when it is ready.
 */
import type { Progress } from "../../core/control/bases";
import { tablePath } from "../data/paths";
import { counted, formatElapsed, inDigits } from "../format";
import { timeLeftMs } from "./time-left";

type TableProgress = Progress["tables"][number];

interface ProgressProps {
  baseId: string;
  progress: Progress;
  now: Date;
}

export function ProgressBars({ baseId, progress, now }: ProgressProps) {
  const { tables, kind, pages, calls } = progress;
  const ready = tables.filter((table) => table.done);
  const isFirst = kind === "first";
  const records = tables.reduce((sum, table) => sum + table.records_done, 0);
  const leftMs = timeLeftMs(progress, now);
  const elapsedMs = Math.max(0, now.getTime() - Date.parse(progress.started_at));
  return (
    <section aria-labelledby="progress-heading" class="first-sync">
      <div class="first-sync-head">
        <Flow />
        <div>
          <h2 id="progress-heading">
            {isFirst ? "First sync" : "Rebuild"}: {ready.length} of {counted(tables.length, "table")} ready
          </h2>
          <p class="muted" role="status">
            {announcement(ready, isFirst)}
          </p>
        </div>
      </div>
      <dl class="figures">
        <div>
          <dt>Records read</dt>
          <dd>{inDigits(records)}</dd>
          {pages ? <dd class="muted small">{counted(pages, "page")}</dd> : null}
        </div>
        {calls === undefined ? null : (
          <div>
            <dt>Calls</dt>
            <dd>{inDigits(calls)}</dd>
            <dd class="muted small">to Airtable</dd>
          </div>
        )}
        <div>
          <dt>Running for</dt>
          <dd>{formatElapsed(elapsedMs)}</dd>
        </div>
        <div>
          <dt>Time left</dt>
          <dd>{leftMs === null ? "–" : `about ${formatElapsed(leftMs)}`}</dd>
          {leftMs === null ? (
            <dd class="muted small">Airtable does not report how many records a table has</dd>
          ) : null}
        </div>
      </dl>
      <ul class="progress-list">
        {tables.map((table) => (
          <li key={table.name} class={table.done ? "ready" : undefined}>
            <TableBar baseId={baseId} table={table} isFirst={isFirst} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Read out when it changes. */
function announcement(ready: TableProgress[], isFirst: boolean): string {
  const latest = ready.at(-1);
  if (!isFirst) return "Your data stays queryable meanwhile.";
  if (!latest) return "Small tables are ready first. Each can be queried as soon as it is complete.";
  if (ready.length === 1) return `${latest.source_name} is ready to query.`;
  return `${latest.source_name} and ${ready.length - 1} more are ready to query.`;
}

function progressText(table: TableProgress): string {
  const { records_done: done, records_estimate: estimate } = table;
  if (table.done) return counted(done, "record");
  // Known columns stay up to date meanwhile.
  if (table.waiting)
    return `${counted(done, "record")} read; waiting for a transaction that has locked the table`;
  if (estimate !== null) return `${inDigits(done)} of about ${inDigits(Math.max(estimate, done))}`;
  return done === 0 ? "waiting" : `${inDigits(done)} so far`;
}

/** Without an estimate, the bar is animated: work is in progress, and the remaining part is unknown. */
function TableBar({ baseId, table, isFirst }: { baseId: string; table: TableProgress; isFirst: boolean }) {
  const { records_done: done, records_estimate: estimate } = table;
  const max = table.done ? Math.max(1, done) : Math.max(estimate ?? 0, done);
  const isKnown = table.done || estimate !== null;
  return (
    <>
      <span class="wrap">
        {table.done ? (
          <a href={tablePath(baseId, table.name)}>
            <bdi>{table.source_name}</bdi>
          </a>
        ) : (
          <bdi>{table.source_name}</bdi>
        )}
        {table.done && isFirst ? (
          <code class="muted small ready-name">
            <span class="visually-hidden">ready as </span>
            {table.name}
          </code>
        ) : null}
      </span>
      <span class={isKnown || done === 0 ? "sync-bar" : "sync-bar running"}>
        <progress
          aria-label={table.source_name}
          max={isKnown ? max || 1 : undefined}
          value={isKnown ? done || (table.done ? 1 : 0) : undefined}
        />
      </span>
      <span class="number small muted">{progressText(table)}</span>
    </>
  );
}

/** Records that move from a base into a database. Decoration: the figures say the same. */
function Flow() {
  return (
    <svg class="flow" viewBox="0 0 120 48" width="120" height="48" aria-hidden="true">
      <g class="flow-base">
        <rect x="2" y="8" width="32" height="32" rx="6" />
        <path d="M2 18.5h32M2 29h32M13 18.5V40" />
      </g>
      <path class="flow-track" d="M40 24h40" />
      <g class="flow-records">
        <rect x="36" y="21" width="9" height="6" rx="2" />
        <rect x="36" y="21" width="9" height="6" rx="2" />
        <rect x="36" y="21" width="9" height="6" rx="2" />
      </g>
      <g class="flow-database">
        <path d="M86 13v22c0 3.3 7.2 6 16 6s16-2.7 16-6V13" />
        <path d="M86 24c0 3.3 7.2 6 16 6s16-2.7 16-6" />
        <ellipse cx="102" cy="13" rx="16" ry="6" />
      </g>
    </svg>
  );
}
