/**
 * Measures how long this machine delayed a process that was ready to run: the delay of this process, or, from Linux
 * (`/proc/pressure/cpu`), any process without a CPU. Requests that were sent meanwhile arrive together.
 */
import { readFileSync } from "node:fs";

const TICK_MS = 5;
/** How often the pressure is read. */
const PRESSURE_EVERY_MS = 50;
/** Shorter delays are not recorded, ms. */
const NOTED_MS = 10;

/** On the machine's clock, ms: in this interval a process may have waited this long. */
export interface Stall {
  from: number;
  to: number;
  ms: number;
  /** The watching process itself stood still for all of it; otherwise, some process may have waited. */
  isOwn: boolean;
}

export interface StallWatch extends Disposable {
  /** The stalls recorded since the last call. */
  take(): Stall[];
}

export function watchStalls(): StallWatch {
  let stalls: Stall[] = [];
  let last = clockMs();
  const ticking = setInterval(() => {
    const now = clockMs();
    const ms = now - last - TICK_MS;
    if (ms > NOTED_MS) stalls.push({ from: last, to: now, ms, isOwn: true });
    last = now;
  }, TICK_MS);
  let [askedAt, waited] = [last, waitedMs()];
  const asking = setInterval(() => {
    const [now, total] = [clockMs(), waitedMs()];
    if (total - waited > NOTED_MS) stalls.push({ from: askedAt, to: now, ms: total - waited, isOwn: false });
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

/** How long some process has waited for a CPU since the machine started, ms; 0 if the system does not report it. */
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
