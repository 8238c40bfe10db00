/** The current state of a base: in words, in figures, and the progress of its first sync or a rebuild. */
import type { Base, SyncKind } from "../../core/control/bases";
import { indicatorOf, isLive, median } from "../../core/control/status";
import { Card } from "../components";
import { Ago } from "../components/ago";
import { counted, formatElapsed, inDigits } from "../format";
import { LiveFigures, LiveNotes } from "./live-mode";
import { ProgressBars } from "./progress";
import { StateBadge } from "./state";

const kinds: Record<SyncKind, string> = {
  first: "first sync",
  rebuild: "rebuild",
  sweep: "full sync",
  rapid: "rapid sync",
  live: "live sync",
};

/** @param props.keyHelpUrl the page about the rights of an API key */
export function Now({ base, now, keyHelpUrl }: { base: Base; now: Date; keyHelpUrl: string | undefined }) {
  const indicator = indicatorOf(base, now);
  const hasFigures = base.sync !== null || isLive(base);
  const records = base.tables.reduce((sum, table) => sum + table.records, 0);
  return (
    <Card id="now">
      <p class="now-state">
        <StateBadge indicator={indicator} state={base.state} isLive={isLive(base)} isAnnounced />
        {/* If all is well, the figures are enough; the badge has the reason on hover and for screen readers. */}
        {indicator.color === "green" && hasFigures ? null : (
          <span class="wrap" aria-hidden="true">
            {indicator.reason}
          </span>
        )}
      </p>
      <NextStep base={base} />
      {/* Before the first sync there is nothing to count. */}
      {hasFigures ? (
        <dl class="figures">
          {isLive(base) ? <LiveFigures base={base} now={now} /> : <SweepFigures base={base} now={now} />}
          <div>
            <dt>Records</dt>
            <dd>{inDigits(records)}</dd>
            <dd class="muted small">in {counted(base.tables.length, "table")}</dd>
          </div>
        </dl>
      ) : null}
      <LiveNotes base={base} now={now} keyHelpUrl={keyHelpUrl} />
      {base.repairs > 0 ? (
        <p>
          {counted(base.repairs, "record")} written through the proxy will be updated in the database shortly.
        </p>
      ) : null}
      {base.progress ? <ProgressBars baseId={base.id} progress={base.progress} now={now} /> : null}
    </Card>
  );
}

/** Shown if the base's owner can do something about it. */
function NextStep({ base }: { base: Base }) {
  const path = `/bases/${base.id}`;
  if (base.error?.code === "source_key_refused" || base.error?.code === "source_forbidden") {
    return (
      <p>
        <a href={`${path}/settings#key`}>Give the base a new API key</a>. Until then your data stays
        queryable.
      </p>
    );
  }
  if (base.state !== "needs_attention") return null;
  return (
    <p>
      <a href={`${path}/runs`}>See the latest runs</a>. We retry every few minutes, and your data stays
      queryable.
    </p>
  );
}

function SweepFigures({ base, now }: { base: Base; now: Date }) {
  const usualMs = median(base.recentSweepMs);
  return (
    <>
      <div>
        <dt>Sync time</dt>
        <dd>{base.sync ? formatElapsed(base.sync.durationMs) : "–"}</dd>
        <dd class="muted small">
          {usualMs === null ? "of the last sync" : `usually ${formatElapsed(usualMs)}`}
        </dd>
      </div>
      <div>
        <dt>Lag</dt>
        <dd>{base.sync ? formatElapsed(now.getTime() - base.sync.startedAt.getTime()) : "–"}</dd>
        <dd class="muted small">{lagNote(base, now)}</dd>
      </div>
      <div>
        <dt>Last sync</dt>
        <dd>{base.sync ? <Ago at={base.sync.completedAt} now={now} /> : "–"}</dd>
        <dd class="muted small">{base.sync ? kinds[base.sync.kind] : "none completed yet"}</dd>
      </div>
    </>
  );
}

/** Rapid cycles do not see deletes and computed fields: those are as of the last full sweep. */
function lagNote({ sync, sweep }: Base, now: Date): string {
  if (sync?.kind !== "rapid" || !sweep) return "the maximum age of a row";
  return `deletes and computed fields: ${formatElapsed(now.getTime() - sweep.startedAt.getTime())}`;
}
