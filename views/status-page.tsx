/** The public status page of an account: how fresh each base is, and its last 90 days. */
import type { PublicBase, StatusDay } from "../core/control/history";
import { DataAsOf } from "./base/problem";
import { Card, Empty, PageHead, Time } from "./components";
import { formatDuration } from "./format";

const DAY_WIDTH = 8;
const HEIGHT = 32;
/** From so many seconds of a day on, an outage colors it; shorter ones color it as a delay. */
const LONG_OUTAGE_S = 10 * 60;

export function StatusPageView({ bases, now }: { bases: PublicBase[]; now: Date }) {
  const faults = bases.filter(({ status }) => status.color === "red").length;
  const delays = bases.filter(({ status }) => status.color === "yellow" && status.word !== "Paused").length;
  const lead =
    faults > 0
      ? `${faults} of ${bases.length} ${bases.length === 1 ? "base" : "bases"} cannot be updated at the moment.`
      : delays > 0
        ? `${delays} of ${bases.length} ${bases.length === 1 ? "base" : "bases"} are behind.`
        : bases.length > 0 && bases.every(({ status }) => status.isCurrent)
          ? "All data is up to date."
          : "No outage at the moment.";
  return (
    <>
      <PageHead title="Status" lead={lead} />
      {bases.length === 0 ? (
        <Card>
          <Empty title="No bases yet" />
        </Card>
      ) : (
        bases.map((base, index) => <StatusCard key={`${index} ${base.name}`} base={base} now={now} />)
      )}
      <p class="small muted">
        As of <Time at={now} form="clock" />; reload the page for news. Days are those of UTC.
      </p>
    </>
  );
}

function StatusCard({ base, now }: { base: PublicBase; now: Date }) {
  const { name, status, days, available } = base;
  const percent = (Math.floor(available * 10_000) / 100).toFixed(2);
  return (
    <Card>
      <div class="status-head">
        <h2>
          <bdi>{name}</bdi>
        </h2>
        <span class={`badge state ${status.color}`}>{status.word}</span>
      </div>
      {status.asOf && !status.isCurrent ? <DataAsOf asOf={status.asOf} now={now} /> : null}
      <svg
        class="status-days"
        role="img"
        aria-label={`The last ${days.length} days: ${percent} % without an outage. ${outageText(days)}`}
        viewBox={`0 0 ${days.length * DAY_WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        {dayPaths(days).map(([name, path]) => (
          <path key={name} class={`day ${name}`} d={path} />
        ))}
        {days.map((day, index) =>
          hasNews(day) ? (
            <rect
              key={day.day}
              class="slot"
              x={index * DAY_WIDTH}
              y="0"
              width={DAY_WIDTH - 2}
              height={HEIGHT}
            >
              <title>{textOf(day)}</title>
            </rect>
          ) : null,
        )}
      </svg>
      <p class="status-foot small muted">
        <span>90 days ago</span>
        <span>{percent} % without an outage</span>
        <span>today</span>
      </p>
    </Card>
  );
}

/** One path per color, and not an element per day: an account may have hundreds of bases. */
function dayPaths(days: StatusDay[]): [name: string, path: string][] {
  const paths = new Map<string, string>();
  for (const [index, day] of days.entries()) {
    const name = classOf(day);
    paths.set(name, (paths.get(name) ?? "") + barAt(index));
  }
  return [...paths];
}

const bars: string[] = [];

/** The same for each base: making 90 of them for hundreds of bases took a fifth of the page. */
function barAt(index: number): string {
  bars[index] ??= `M${index * DAY_WIDTH} 0h${DAY_WIDTH - 2}v${HEIGHT}h-${DAY_WIDTH - 2}z`;
  return bars[index];
}

/** Whether there is more to say than the color does. */
function hasNews({ seconds }: StatusDay): boolean {
  return seconds !== null && Object.keys(seconds).length > 0;
}

function classOf({ seconds }: StatusDay): string {
  if (!seconds) return "none";
  const { outage = 0, delay = 0, pause = 0 } = seconds;
  if (outage >= LONG_OUTAGE_S) return "outage";
  if (outage > 0 || delay >= LONG_OUTAGE_S) return "delay";
  return pause > 0 ? "pause" : "well";
}

function textOf({ day, seconds }: StatusDay): string {
  if (!seconds) return `${day}: not connected yet`;
  const { outage = 0, delay = 0, pause = 0 } = seconds;
  const parts = [
    outage > 0 ? `outage of ${formatDuration(outage * 1000)}` : "",
    delay > 0 ? `behind for ${formatDuration(delay * 1000)}` : "",
    pause > 0 ? `paused for ${formatDuration(pause * 1000)}` : "",
  ].filter(Boolean);
  return `${day}: ${parts.length > 0 ? parts.join(", ") : "no outage"}`;
}

/** Days with an outage, as text for those who do not see the chart. */
function outageText(days: StatusDay[]): string {
  const bad = days.filter(({ seconds }) => (seconds?.outage ?? 0) > 0);
  return bad.length === 0 ? "No outage." : bad.map(textOf).join("; ");
}
