/**
 * The calls of a month compared with its cap, as one bar: used calls by purpose, the reserve for clients, and the forecast.
 *
 * For screen readers, one image with `summary` as its text. Drawn without a `style` attribute, which the
 * Content-Security-Policy forbids.
 */

/** Units of the drawing; the stylesheet sets its size. */
const WIDTH = 1000;
const HEIGHT = 24;
/** Every use above zero is visible, however small. */
const MIN_PART = 3;

interface BudgetBarProps {
  summary: string;
  /** Calls a month. */
  cap: number;
  sync: number;
  client: number;
  /** Of the client's calls, those of the console. */
  console: number;
  /** Calls that are reserved for clients, used or not. */
  reserve: number;
  /** The forecast of calls at the month's end; null: none. */
  forecast: number | null;
}

export function BudgetBar({ summary, cap, sync, client, console: own, reserve, forecast }: BudgetBarProps) {
  // Beyond the cap, the bar shows only the used calls.
  const all = Math.max(cap, sync + client);
  const keptWidth = width(Math.max(0, Math.min(reserve - client, cap - sync - client)), all);
  const [syncWidth, clientWidth, ownWidth] = [width(sync, all), width(client - own, all), width(own, all)];
  return (
    <svg
      class="budget-bar"
      role="img"
      aria-label={summary}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      <rect class="budget-left" width={WIDTH} height={HEIGHT} />
      <rect class="budget-kept" x={WIDTH - keptWidth} width={keptWidth} height={HEIGHT} />
      <rect class="bar" width={syncWidth} height={HEIGHT} />
      <rect class="bar client" x={syncWidth} width={clientWidth} height={HEIGHT} />
      <rect class="bar console" x={syncWidth + clientWidth} width={ownWidth} height={HEIGHT} />
      {forecast === null ? null : <Forecast calls={forecast} cap={cap} all={all} />}
    </svg>
  );
}

function Forecast({ calls, cap, all }: { calls: number; cap: number; all: number }) {
  const at = Math.min(WIDTH - 2, Math.max(2, (WIDTH * calls) / all));
  return (
    <line
      class={calls > cap ? "budget-forecast over" : "budget-forecast"}
      x1={at}
      x2={at}
      y1="0"
      y2={HEIGHT}
    />
  );
}

function width(calls: number, all: number): number {
  if (calls <= 0) return 0;
  return Math.round(Math.min(WIDTH, Math.max(MIN_PART, (WIDTH * calls) / all)));
}
