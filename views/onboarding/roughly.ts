/** Durations of estimates: one unit, no false precision. */

const units: [name: string, ms: number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

/** `3 days`, `24 hours`, `90 seconds`: the largest unit of which there are at least two. */
export function roughly(ms: number): string {
  for (const [name, size] of units) if (ms >= 2 * size) return `${Math.round(ms / size)} ${name}s`;
  return "1 second";
}
