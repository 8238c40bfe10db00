/** Live mode of a base in plain words: how changes arrive, whether SQL has them, and the remedy if it does not work. */
import type { Base, LiveState } from "../../core/control/bases";
import { isLive, median } from "../../core/control/status";
import { Ago, Card, Figure, NewTabLink, Note, Time } from "../components";
import { counted, formatDuration, inDigits } from "../format";

/** An active base without a cap is polled at least this often, ms. */
const LONGEST_ACTIVE_MS = 2000;

export function LiveFigures({ base, now }: { base: Base & { live: LiveState }; now: Date }) {
  const { live } = base;
  return (
    <>
      <Figure
        name="Changes arrive"
        note={live.by === "notification" ? "Airtable notifies us" : "we poll Airtable"}
      >
        {paceOf(live)}
      </Figure>
      <Figure name="Last change" note={live.changedAt ? roundNote(base) : "none since live sync started"}>
        {live.changedAt ? <Ago at={live.changedAt} now={now} /> : "–"}
      </Figure>
      <Figure
        name="Waiting"
        note={
          live.waiting > 0 && live.waitingSince
            ? `changed records, the oldest for ${formatDuration(now.getTime() - live.waitingSince.getTime())}`
            : "every known change is in SQL"
        }
      >
        {inDigits(live.waiting)}
      </Figure>
    </>
  );
}

/** How live sync reads and verifies: for the page of freshness, because none of it changes what SQL shows. */
export function LiveReads({ base, now }: { base: Base & { live: LiveState }; now: Date }) {
  const { live } = base;
  return (
    <Card id="live-reads" title="Live sync">
      <dl class="figures">
        <Figure
          name="Sync time"
          note={base.sync?.kind === "live" ? "of the last change" : "of the last full sync"}
        >
          {base.sync ? formatDuration(base.sync.durationMs) : "–"}
        </Figure>
        <Figure name="Last read" note={readNote(base)}>
          {live.readAt ? <Ago at={live.readAt} now={now} /> : "–"}
        </Figure>
        <Figure
          name="Last comparison"
          note={
            live.comparedAt === null
              ? "not run yet"
              : live.driftedSince
                ? "the database was behind Airtable"
                : "the database matched Airtable"
          }
        >
          {live.comparedAt ? <Ago at={live.comparedAt} now={now} /> : "–"}
        </Figure>
      </dl>
      <p class="muted small">
        While nothing changes, no sync runs. <code>completed_at</code> in <code>_sync_meta</code> is then the
        time of the last read of Airtable's changes, which found everything in the database.
      </p>
      <Missed live={live} sweep={base.sweep} now={now} />
    </Card>
  );
}

/** Notes in addition to the figures: possible gaps, and why a base is not live. */
export function LiveNotes({ base, keyHelpUrl }: { base: Base; keyHelpUrl: string | undefined }) {
  const { live, settings } = base;
  if (settings.rapid) return null;
  if (!settings.live) {
    return (
      <p class="muted small">
        Live changes are <a href={`/bases/${base.id}/settings`}>turned off</a>, so we poll every table.
      </p>
    );
  }
  if (!live) return null;
  if (live.state === "refused") return <Refused base={base} keyHelpUrl={keyHelpUrl} />;
  if (!isLive(base))
    return <p class="muted small">Live sync is being set up. Until then we poll every table.</p>;
  if (!live.gapSince) return null;
  return (
    <p>
      Airtable cannot report what changed before <Time at={live.gapSince} form="clock" />, so we are
      re-reading every record. Newer changes continue to arrive.
    </p>
  );
}

/** Where the rights of the key can be changed; the problem itself says which one it lacks. */
function Refused({ base, keyHelpUrl }: { base: Base; keyHelpUrl: string | undefined }) {
  return (
    <Note tone="info" title="To switch live sync on">
      <p>
        {keyHelpUrl ? (
          <>
            You can change a token's scopes at{" "}
            <NewTabLink href={keyHelpUrl}>{keyHelpUrl.replace("https://", "")}</NewTabLink>.{" "}
          </>
        ) : null}
        Then check again above. We also try again every hour, and immediately when you add a{" "}
        <a href={`/bases/${base.id}/settings`}>new API key</a>.
      </p>
    </Note>
  );
}

/** How soon the service learns of a change. */
function paceOf(live: LiveState): string {
  return live.by === "notification" ? "immediately" : `within ${intervalOf(live)}`;
}

/** Without changes no sync runs, and the last read shows that. */
function readNote({ live, workspaceId }: Base & { live: LiveState }): string {
  const every = `every ${intervalOf(live)}`;
  if (live.by === "notification") return `${every}, and at each change`;
  // A call budget may be the reason for a longer interval, and goes on.
  const isIdle = workspaceId === null && intervalMs(live) > LONGEST_ACTIVE_MS;
  return isIdle ? `${every} while nothing changes, then every second` : every;
}

/** Between two reads: whole seconds, because it is an interval of requests, not a measurement. */
function intervalOf(live: LiveState): string {
  const ms = intervalMs(live);
  return ms < 10_000 ? `${Math.max(1, Math.round(ms / 1000))} s` : formatDuration(ms);
}

function intervalMs({ readAt, dueAt }: LiveState): number {
  return readAt && dueAt ? dueAt.getTime() - readAt.getTime() : 0;
}

/** The time from learning of a change to having it in SQL. */
function roundNote({ sync, recentSweepMs }: Base): string {
  const usualMs = sync?.kind === "live" ? median(recentSweepMs) : null;
  return usualMs === null
    ? "reported by Airtable"
    : `usually in the database within ${formatDuration(usualMs)}`;
}

/** Changes that the feed missed and a sweep found. */
function Missed({ live, sweep, now }: { live: LiveState; sweep: Base["sweep"]; now: Date }) {
  const { missed } = live;
  return (
    <p class="muted small">
      {missed === 0
        ? "No missed changes. A full check in the background re-reads every record to make sure."
        : `Missed changes: ${counted(missed, "record")} that Airtable did not report. A full check in the background, which re-reads every record, found and corrected them.`}
      {sweep ? (
        <>
          {" "}
          It last finished <Ago at={sweep.completedAt} now={now} />.
        </>
      ) : null}
    </p>
  );
}
