/** The current state of a base: one line with one action, four figures, and the progress of its first sync or a rebuild. */

import type { Base } from "../../core/control/bases";
import { quotaKeyOf } from "../../core/control/budgets";
import { type BaseStatus, isLive, median, statusOf } from "../../core/control/status";
import { syncShare } from "../../core/limiter";
import { Ago, Card, Figure } from "../components";
import { capitalized, counted, formatDuration, inDigits } from "../format";
import { FailingTables } from "./failing-tables";
import { LiveFigures, LiveNotes } from "./live-mode";
import { BaseProblem, RemedyAction } from "./problem";
import { ProgressBars } from "./progress";
import { runKindLabels } from "./runs";
import { StateBadge } from "./state";

/** @param props.keyHelpUrl the page about the rights of an API key */
export function Now({ base, now, keyHelpUrl }: { base: Base; now: Date; keyHelpUrl: string | undefined }) {
  const status = statusOf(base, now);
  // A first sync has its progress below, and nothing else to report.
  const isStarting = status.word === "First sync";
  return (
    <Card id="now">
      <div class="now-state">
        <StateBadge status={status} now={now} isAnnounced />
        <p class="wrap">{sentenceOf(status)}</p>
        {base.openIssueCount > 0 ? <IssueLink base={base} /> : null}
        {status.remedy ? <RemedyAction base={base} status={status} remedy={status.remedy} /> : null}
      </div>
      {status.isCurrent || isStarting ? null : <BaseProblem base={base} status={status} now={now} />}
      <FailingTables base={base} now={now} />
      {/* Before the first sync there is nothing to count. */}
      {base.sync ? <Figures base={base} now={now} isCurrent={status.isCurrent} /> : null}
      {mayExplain(base, status) ? <LiveNotes base={base} keyHelpUrl={keyHelpUrl} /> : null}
      {status.isCurrent && base.repairs > 0 ? (
        <p>
          {counted(base.repairs, "record")} written through the proxy will be updated in the database shortly.
        </p>
      ) : null}
      {base.progress && base.state !== "paused" ? (
        <ProgressBars
          base={base}
          progress={base.progress}
          share={shareOf(base, base.settings.turbo)}
          turboShare={shareOf(base, true)}
          now={now}
        />
      ) : null}
    </Card>
  );
}

/** Without the word that the badge has: `The database matched Airtable 17 s ago.` */
function sentenceOf({ isCurrent, word, headline }: BaseStatus): string {
  if (!isCurrent || !headline.startsWith(`${word}; `)) return headline;
  return capitalized(headline.slice(word.length + 2));
}

/** Calls a second that a sync of the base may make. */
function shareOf(base: Base, isTurbo: boolean): number {
  return syncShare(quotaKeyOf(base), isTurbo);
}

/** Why a base is not live explains its lag; the other notes are for a base that is current. */
function mayExplain(base: Base, { isCurrent }: BaseStatus): boolean {
  const isHealthy = base.error === null && base.state === "active" && base.live?.state === "refused";
  return isCurrent || isHealthy;
}

function IssueLink({ base }: { base: Base }) {
  return (
    <a class="badge yellow" href={`/bases/${base.id}/issues`}>
      {counted(base.openIssueCount, "issue")}
    </a>
  );
}

/** Of a base that is not current, only how much data there is: the other figures would suggest that it is fresh. */
function Figures({ base, now, isCurrent }: { base: Base; now: Date; isCurrent: boolean }) {
  const records = base.tables.reduce((sum, table) => sum + table.records, 0);
  return (
    <dl class="figures">
      {!isCurrent ? null : isLive(base) ? (
        <LiveFigures base={base} now={now} />
      ) : (
        <SweepFigures base={base} now={now} />
      )}
      <Figure name="Records" note={`in ${counted(base.tables.length, "table")}`}>
        {inDigits(records)}
      </Figure>
    </dl>
  );
}

function SweepFigures({ base, now }: { base: Base; now: Date }) {
  const usualMs = median(base.recentSweepMs);
  return (
    <>
      <Figure
        name="Sync time"
        note={usualMs === null ? "of the last sync" : `usually ${formatDuration(usualMs)}`}
      >
        {base.sync ? formatDuration(base.sync.durationMs) : "–"}
      </Figure>
      <Figure name="Lag" note={lagNote(base, now)}>
        {base.sync ? formatDuration(now.getTime() - base.sync.startedAt.getTime()) : "–"}
      </Figure>
      <Figure
        name="Last sync"
        note={base.sync ? runKindLabels[base.sync.kind].toLowerCase() : "none completed yet"}
      >
        {base.sync ? <Ago at={base.sync.completedAt} now={now} /> : "–"}
      </Figure>
    </>
  );
}

/** Rapid cycles do not see deletes and computed fields: those are as of the last full sweep. */
function lagNote({ sync, sweep }: Base, now: Date): string {
  if (sync?.kind !== "rapid" || !sweep) return "the maximum age of a row";
  return `deletes and computed fields: ${formatDuration(now.getTime() - sweep.startedAt.getTime())}`;
}
