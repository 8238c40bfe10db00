/** Numbers and durations in texts: the only formatter, so that every page, alert and log says the same. */

const counts = new Intl.NumberFormat("en-US");

/** `12,345`. */
export function inDigits(count: number): string {
  return count < 1000 ? String(count) : counts.format(count);
}

/** `12 records`, `1 record`. */
export function counted(count: number, noun: string): string {
  return `${inDigits(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** `42 ms`, `0.42 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `4 d 2 h`. */
export function formatDuration(ms: number): string {
  // Truncated, not rounded: there is no `60 s`.
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 0.1) return `${Math.floor(seconds * 1000)} ms`;
  if (seconds < 1) return `${(Math.floor(seconds * 100) / 100).toFixed(2)} s`;
  if (seconds < 10) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return twoUnits(minutes, "min", Math.floor(seconds % 60), "s");
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? twoUnits(hours, "h", minutes % 60, "min")
    : twoUnits(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** `3 min 20 s`, `3 min`. */
function twoUnits(great: number, greatUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${great} ${greatUnit}` : `${great} ${greatUnit} ${small} ${smallUnit}`;
}
