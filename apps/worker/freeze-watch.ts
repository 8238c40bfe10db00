/** Detects that this process was frozen: its event loop was blocked, or the process itself was stopped. */

import { SHORTEST_MS } from "../../core/sync/pacing";

export function watchFreezes() {
  let tickedAt = performance.now();
  let longest = { ms: 0, endedAt: Number.NEGATIVE_INFINITY };
  const look = () => {
    const now = performance.now();
    const ms = now - tickedAt - SHORTEST_MS;
    if (ms > SHORTEST_MS) longest = { ms, endedAt: now };
    tickedAt = now;
  };
  const timer = setInterval(look, SHORTEST_MS);
  return {
    /** Was the process frozen for at least `ms` within the last `withinMs`? */
    stoodStill(ms: number, withinMs: number): boolean {
      // The timer may run after this call.
      const now = performance.now();
      if (now - tickedAt - SHORTEST_MS >= ms) return true;
      return longest.ms >= ms && now - longest.endedAt <= withinMs;
    },
    stop: () => clearInterval(timer),
  };
}
