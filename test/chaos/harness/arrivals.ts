/**
 * I4. Never more than five requests within a second for one base, as the source saw them come.
 *
 * A machine that stands still for a moment lets what was sent in order arrive in a bunch; the ledger allows for 25 ms
 * of that. More is forgiven only as far as somebody was seen to stand still just then.
 *
 * A process that was frozen between its place and its request sends it when it goes on: nobody can call that back. One
 * request too many is allowed around such a moment, and counted apart.
 */

import { NOTED_MS, type Stall } from "../../support/stall-watch";
import type { Arrival } from "./source";

const PER_WINDOW = 5;
const WINDOW_MS = 1000;
/** So many are looked at. */
const MOST = 50;
/** From one grant to the fifth after it, as the ledger gives them out, ms. */
const GRANTED_MS = 1025;
/** Two on the way, each of which may stand still for so long before it is noted, ms. */
const UNNOTED_MS = 2 * NOTED_MS;
/** What stood still so long before a request came counts, ms. */
const NEAR_MS = 300;

export class ArrivalCheck {
  readonly violations: string[] = [];
  /** Most requests in any second, and windows that were forgiven. */
  most = 0;
  forgiven = 0;
  /** By how much those were too short, where no fault held up what went to the source; ms. */
  readonly shortBy: number[] = [];
  /** Windows with one too many where a frozen process went on. */
  overtaken = 0;
  /** When a frozen process went on, on the arrivals' clock. */
  readonly thawedAt: number[] = [];
  #last = new Map<string, Arrival[]>();

  /** @param stalls of everybody on the way, on the arrivals' clock */
  add(baseId: string, arrivals: Arrival[], stalls: Stall[]): void {
    const all = [...(this.#last.get(baseId) ?? []), ...arrivals];
    for (const [index, { at }] of all.entries()) {
      const window = all.slice(Math.max(0, index - MOST), index + 1).filter((one) => at - one.at < WINDOW_MS);
      this.most = Math.max(this.most, window.length);
      if (window.length <= PER_WINDOW) continue;
      const six = window.slice(-PER_WINDOW - 1);
      const missingMs = GRANTED_MS - (at - six[0]!.at);
      const heldMs = heldUpMs(six[0]!.at, stalls);
      if (missingMs <= GRANTED_MS - WINDOW_MS + heldMs) {
        this.forgiven++;
        if (heldMs < Number.POSITIVE_INFINITY) this.shortBy.push(missingMs);
      } else if (window.length === PER_WINDOW + 1 && this.#isOvertaken(six)) this.overtaken++;
      else this.violations.push(`I4: ${describe(six)}`);
    }
    this.#last.set(baseId, all.slice(-PER_WINDOW));
  }

  #isOvertaken(six: Arrival[]): boolean {
    return this.thawedAt.some((at) => six.some((one) => one.at >= at && one.at < at + NEAR_MS));
  }
}

function describe(arrivals: Arrival[]): string {
  const [first] = arrivals;
  const each = arrivals.map(({ at, what }) => `${(at - first!.at).toFixed(0)} ms ${what}`);
  return `${arrivals.length} requests within a second: ${each.join(", ")}`;
}

/** How long what came first may have been held up, ms. */
function heldUpMs(first: number, stalls: Stall[]): number {
  return stalls
    .filter(({ from, to }) => from <= first && to >= first - NEAR_MS)
    .reduce((sum, { ms }) => sum + ms, UNNOTED_MS);
}
