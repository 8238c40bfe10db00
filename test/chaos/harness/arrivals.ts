/**
 * I4. Never more than five requests within a second for one base, as the source saw them come.
 *
 * No window is excused: a busy machine, a process that was frozen and a network that varies are what the limit has to be
 * kept through. Not counted are requests that a line of the harness had held back for seconds, since when those arrive
 * is when the test lets them go.
 */
import type { Stall } from "../../support/stall-watch";
import type { Arrival, Arrivals } from "./source";

const PER_WINDOW = 5;
const WINDOW_MS = 1000;
/** So many are looked at. */
const MOST = 50;
/** What was let go is with the source within this time, on any network that the suite runs on, ms. */
const RELEASED_MS = 200;

export class ArrivalCheck {
  readonly violations: string[] = [];
  /** Most requests in any second. */
  most = 0;
  /** Requests that were not counted. */
  heldBack = 0;
  #last = new Map<string, Arrival[]>();

  add(
    baseId: string,
    arrivals: Arrival[],
    { releasedAt, stalls }: Pick<Arrivals, "releasedAt" | "stalls">,
  ): void {
    const isHeldBack = ({ at }: Arrival) => releasedAt.some((from) => at >= from && at < from + RELEASED_MS);
    const counted = arrivals.filter((one) => !isHeldBack(one));
    this.heldBack += arrivals.length - counted.length;
    const all = [...(this.#last.get(baseId) ?? []), ...counted];
    for (const [index, { at }] of all.entries()) {
      const window = all.slice(Math.max(0, index - MOST), index + 1).filter((one) => at - one.at < WINDOW_MS);
      this.most = Math.max(this.most, window.length);
      if (window.length > PER_WINDOW)
        this.violations.push(`I4: ${describe(window.slice(-PER_WINDOW - 1), stalls)}`);
    }
    this.#last.set(baseId, all.slice(-PER_WINDOW));
  }
}

/** What a person who looks into it has to know; when the source itself stood still excuses nothing. */
function describe(arrivals: Arrival[], stalls: Stall[]): string {
  const [first] = arrivals;
  const each = arrivals.map(({ at, what }) => `${(at - first!.at).toFixed(0)} ms ${what}`);
  const stall = stalls.find(({ from, to }) => to > first!.at - WINDOW_MS && from < arrivals.at(-1)!.at);
  const note = stall ? `; something waited ${stall.ms.toFixed(0)} ms for a processor then` : "";
  return `${arrivals.length} requests within a second: ${each.join(", ")}${note}`;
}
