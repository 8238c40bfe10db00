/** Live mode of a base in plain words: how changes arrive, whether SQL has them, and the remedy if it does not work. */
import type { Base, LiveState } from "../../core/control/bases";
import { isLive, median } from "../../core/control/status";
import { Note } from "../components";
import { Ago } from "../components/ago";
import { clock, counted, formatElapsed, inDigits } from "../format";

interface Props {
  base: Base;
  now: Date;
}

export function LiveFigures({ base, now }: { base: Base & { live: LiveState }; now: Date }) {
  const { live } = base;
  return (
    <>
      <div>
        <dt>Changes arrive</dt>
        <dd>{paceOf(live)}</dd>
        <dd class="muted small">{live.by === "ping" ? "the source notifies us" : "the source is asked"}</dd>
      </div>
      <div>
        <dt>Last change</dt>
        <dd>{live.changedAt ? <Ago at={live.changedAt} now={now} /> : "–"}</dd>
        <dd class="muted small">{live.changedAt ? roundNote(base) : "none since it is live"}</dd>
      </div>
      <div>
        <dt>Waiting</dt>
        <dd>{inDigits(live.waiting)}</dd>
        <dd class="muted small">
          {live.waiting > 0 && live.waitingSince
            ? `changed records, the oldest for ${formatElapsed(now.getTime() - live.waitingSince.getTime())}`
            : "every known change is in SQL"}
        </dd>
      </div>
      <div>
        <dt>Compared</dt>
        <dd>{live.comparedAt ? <Ago at={live.comparedAt} now={now} /> : "–"}</dd>
        <dd class="muted small">
          {live.comparedAt === null
            ? "SQL and source, soon"
            : live.driftedSince
              ? "SQL was behind the source"
              : "SQL was the same as the source"}
        </dd>
      </div>
    </>
  );
}

/** Notes in addition to the figures: missed changes, possible gaps, and why a base is not live. */
export function LiveNotes({ base, now, keyHelpUrl }: Props & { keyHelpUrl: string | undefined }) {
  const { live, settings } = base;
  if (settings.rapid) return null;
  if (!settings.live) {
    return (
      <p class="muted small">
        Live changes are <a href={`/bases/${base.id}/settings`}>switched off</a>: all tables are read over and
        over.
      </p>
    );
  }
  if (!live) return null;
  if (live.state === "refused") return <Refused base={base} reason={live.reason} keyHelpUrl={keyHelpUrl} />;
  if (!isLive(base))
    return <p class="muted small">Live mode is being set up. Until then all tables are swept.</p>;
  return (
    <>
      {live.gapSince ? (
        <p>
          The source does not tell what changed before {clock(live.gapSince)} UTC, so every record is read
          once more. Newer changes arrive meanwhile.
        </p>
      ) : null}
      <Missed live={live} sweep={base.sweep} now={now} />
    </>
  );
}

function Refused({
  base,
  reason,
  keyHelpUrl,
}: {
  base: Base;
  reason: string;
  keyHelpUrl: string | undefined;
}) {
  return (
    <Note tone="warn" title="Not live: the source does not tell us what changes">
      <p>{reason}</p>
      <p>
        {keyHelpUrl ? (
          <>
            The scopes of a token are ticked at{" "}
            <a href={keyHelpUrl} target="_blank" rel="noreferrer">
              {keyHelpUrl.replace("https://", "")}
              <span class="visually-hidden"> (opens in a new tab)</span>
            </a>
            .{" "}
          </>
        ) : null}
        We try again every hour, and at once with a <a href={`/bases/${base.id}/settings`}>new API key</a>.
        Until then all tables are swept as before.
      </p>
    </Note>
  );
}

/** How soon the service learns of a change. */
function paceOf({ by, readAt, dueAt }: LiveState): string {
  if (by === "ping") return "at once";
  const paceMs = readAt && dueAt ? dueAt.getTime() - readAt.getTime() : 0;
  // Whole seconds: this is the interval of requests, not a measurement.
  return `within ${paceMs < 10_000 ? `${Math.max(1, Math.round(paceMs / 1000))} s` : formatElapsed(paceMs)}`;
}

/** The time from learning of a change to having it in SQL. */
function roundNote({ sync, recentSweepMs }: Base): string {
  const usualMs = sync?.kind === "live" ? median(recentSweepMs) : null;
  return usualMs === null ? "as the source told us" : `usually in SQL within ${formatElapsed(usualMs)}`;
}

/** Changes that the feed missed and a sweep found. */
function Missed({ live, sweep, now }: { live: LiveState; sweep: Base["sweep"]; now: Date }) {
  const { missed } = live;
  return (
    <p class="muted small">
      {missed === 0
        ? "Missed so far: none. A slow sweep in the background reads everything, and counts what the source did not tell of."
        : `Missed so far: ${counted(missed, "record")} that changed without a word from the source. A slow sweep in the background, which reads everything, has found them and put them right.`}
      {sweep ? (
        <>
          {" "}
          It last ended <Ago at={sweep.completedAt} now={now} />.
        </>
      ) : null}
    </p>
  );
}
