/** A small chart of durations within a line of a table, on a logarithmic scale from a tenth of a second to a day. */
import { DAY_MS } from "../../core/time-units";

const WIDTH = 96;
const HEIGHT = 20;
const LEAST_MS = 100;

export function Sparkline({ values, summary }: { values: (number | null)[]; summary: string }) {
  const slot = WIDTH / Math.max(1, values.length);
  const path = values
    .map((value, index) => {
      if (value === null) return "";
      const share = Math.log(Math.max(LEAST_MS, value) / LEAST_MS) / Math.log(DAY_MS / LEAST_MS);
      const height = Math.round(Math.max(1.5, Math.min(1, share) * HEIGHT) * 10) / 10;
      return `M${Math.round(index * slot * 10) / 10} ${HEIGHT}v${-height}h${slot - 1}v${height}z`;
    })
    .join("");
  return (
    <svg class="sparkline" role="img" aria-label={summary} viewBox={`0 0 ${WIDTH} ${HEIGHT}`}>
      <title>{summary}</title>
      <path class="lag-p50" d={path} />
    </svg>
  );
}
