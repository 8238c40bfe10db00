/**
 * The progress of a first sync or a rebuild: what was read, and which tables can be queried already. Each table is
 * announced when it is ready.
 */
import type { Base, Progress } from "../../core/control/bases";
import { atRate, LEAST_MS, type TimeRange, timeLeft } from "../../core/control/status";
import { Button, Figure, Form } from "../components";
import { tablePath } from "../data/paths";
import { aboutDigits, counted, formatDuration, inDigits, rangeText } from "../format";
import { QueryTable } from "./run-query";

type TableProgress = Progress["tables"][number];

interface ProgressProps {
  base: Pick<Base, "id" | "database" | "settings">;
  progress: Progress;
  /** Calls a second that the sync may make: now, and with Turbo. */
  share: number;
  turboShare: number;
  now: Date;
}

export function ProgressBars({ base, progress, share, turboShare, now }: ProgressProps) {
  const { tables, kind } = progress;
  const ready = tables.filter((table) => table.done);
  const isFirst = kind === "first";
  const left = timeLeft(progress, share, now);
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
        {isFirst && ready[0] ? (
          <QueryTable base={base} table={ready[0].name} kind="primary">
            <span>
              Query <bdi>{ready[0].source_name}</bdi>
            </span>
          </QueryTable>
        ) : null}
      </div>
      <Figures progress={progress} left={left} now={now} />
      <ul class="progress-list">
        {tables.map((table) => (
          <li key={table.name} class={table.done ? "ready" : undefined}>
            <TableBar baseId={base.id} table={table} isFirst={isFirst} />
          </li>
        ))}
      </ul>
      {left && left.least > 0 && !base.settings.turbo ? (
        <Faster baseId={base.id} left={left} share={share} turboShare={turboShare} />
      ) : null}
    </section>
  );
}

function Figures({
  progress,
  left,
  now,
}: Pick<ProgressProps, "progress" | "now"> & { left: TimeRange | null }) {
  const { tables, calls, started_at: startedAt } = progress;
  const elapsedMs = Math.max(0, now.getTime() - Date.parse(startedAt));
  const records = tables.reduce((sum, table) => sum + table.records_done, 0);
  const expected = expectedRecords(tables);
  return (
    <dl class="figures">
      <Figure name="Time left" note={`running for ${formatDuration(elapsedMs)}`}>
        {left ? rangeText(left) : "estimating…"}
      </Figure>
      <Figure
        name="Records read"
        note={
          expected === null ? "counting the others" : `of about ${aboutDigits(Math.max(records, expected))}`
        }
      >
        {inDigits(records)}
      </Figure>
      <Figure
        name="Records a second"
        note={calls === undefined ? null : `${counted(calls, "call")} to Airtable so far`}
      >
        {elapsedMs < LEAST_MS ? "–" : inDigits(Math.round((records * 1000) / elapsedMs))}
      </Figure>
    </dl>
  );
}

/** Airtable allows more calls than a sync makes. */
function Faster(props: { baseId: string; left: TimeRange; share: number; turboShare: number }) {
  const { baseId, left, share, turboShare } = props;
  const withTurbo = atRate(left, turboShare / share);
  return (
    <Form action={`/bases/${baseId}/turbo`} class="go-faster">
      <Button isSmall>Turn on Turbo</Button>
      <p class="muted small">
        Go faster: {turboShare} calls a second instead of {share}, about {rangeText(withTurbo)} left. For
        bases that no other program reads much; you can turn it off in Settings.
      </p>
    </Form>
  );
}

/** Null while a table is of unknown size. */
function expectedRecords(tables: TableProgress[]): number | null {
  let sum = 0;
  for (const { done, records_done: read, records_estimate: estimate } of tables) {
    if (!done && estimate === null) return null;
    sum += done ? read : Math.max(read, estimate ?? 0);
  }
  return sum;
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
  const { records_done: done, records_estimate: estimate, records_error: error } = table;
  if (table.done) return counted(done, "record");
  // Known columns stay up to date meanwhile.
  if (table.waiting)
    return `${counted(done, "record")} read; waiting for a transaction that has locked the table`;
  if (estimate !== null) {
    const expected = Math.max(estimate, done);
    return `${inDigits(done)} of ${error ? `about ${aboutDigits(expected)}` : inDigits(expected)}`;
  }
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
