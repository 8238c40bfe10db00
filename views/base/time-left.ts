/** Estimates how long a first sync or a rebuild still takes. */
import type { Progress } from "../../core/control/bases";

/** Below this, the rate means nothing: the first requests wait for connections. */
const LEAST_MS = 3000;

/** Returns null while the size of a table is unknown, or too little was read to know the rate. */
export function timeLeftMs({ tables, started_at: startedAt }: Progress, now: Date): number | null {
  const open = tables.filter((table) => !table.done);
  const elapsedMs = now.getTime() - Date.parse(startedAt);
  const read = tables.reduce((sum, table) => sum + table.records_done, 0);
  if (open.length === 0) return 0;
  if (elapsedMs < LEAST_MS || read === 0) return null;
  let left = 0;
  for (const { records_done: done, records_estimate: estimate } of open) {
    if (estimate === null) return null;
    left += Math.max(0, estimate - done);
  }
  return (left * elapsedMs) / read;
}
