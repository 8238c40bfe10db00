/**
 * How long this machine kept somebody waiting who had something to do: this process late at what it had to do, or, as
 * Linux tells it (`/proc/pressure/cpu`), any process without a processor. What was sent meanwhile comes in a bunch.
 */
import { readFileSync } from "node:fs";

const TICK_MS = 5;
/** How often the machine is asked. */
const PRESSURE_EVERY_MS = 50;
/** Less than this is not noted, ms. */
const NOTED_MS = 10;

/** On the machine's clock, ms: within that time somebody may have waited for so long. */
export interface Stall {
  from: number;
  to: number;
  ms: number;
}

export interface StallWatch extends Disposable {
  /** Those noted since the last call. */
  take(): Stall[];
}

export function watchStalls(): StallWatch {
  let stalls: Stall[] = [];
  let last = clockMs();
  const ticking = setInterval(() => {
    const now = clockMs();
    const ms = now - last - TICK_MS;
    if (ms > NOTED_MS) stalls.push({ from: last, to: now, ms });
    last = now;
  }, TICK_MS);
  let [askedAt, waited] = [last, waitedMs()];
  const asking = setInterval(() => {
    const [now, total] = [clockMs(), waitedMs()];
    if (total - waited > NOTED_MS) stalls.push({ from: askedAt, to: now, ms: total - waited });
    [askedAt, waited] = [now, total];
  }, PRESSURE_EVERY_MS);
  return {
    take() {
      const taken = stalls;
      stalls = [];
      return taken;
    },
    [Symbol.dispose]() {
      clearInterval(ticking);
      clearInterval(asking);
    },
  };
}

/** For how long some process has waited for a processor since the machine started, ms; 0 where nobody counts. */
function waitedMs(): number {
  try {
    return Number(/some .*total=(\d+)/.exec(readFileSync("/proc/pressure/cpu", "utf8"))?.[1] ?? 0) / 1000;
  } catch {
    return 0;
  }
}

/** The machine's clock, ms, with fractions. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}
