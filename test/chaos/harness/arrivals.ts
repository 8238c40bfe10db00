/**
 * I4. Never more than five requests within a second for one base, as the source saw them arrive.
 *
 * No interval and no request is excepted: the limit must hold on a busy machine, with suspended processes and a varying
 * network. A request that a proxy of the harness has delayed counts from the time at which it would have arrived
 * without it. One that the source saw only after it had stood still itself may have arrived when that began: six
 * requests are too many if they are even then.
 */
import type { Stall } from "../../support/stall-watch";
import type { Arrival } from "./source";

const PER_WINDOW = 5;
const WINDOW_MS = 1000;
/**
 * How much later than other, already checked arrivals an arrival may be reported; longer than a proxy delays it, ms.
 */
const LATE_MS = 60_000;
/** How long after a standstill of the source what arrived meanwhile may be seen, ms: it passes several sockets there. */
const SEEN_MS = 10;

export class ArrivalCheck {
  readonly violations: string[] = [];
  /** The most requests in any second. */
  most = 0;
  /** Requests that count from another time than their arrival. */
  kept = 0;
  /** Six requests within a second that may have arrived earlier than the source saw them. */
  readonly uncertain: string[] = [];
  readonly #known = new Map<string, Arrival[]>();

  add(baseId: string, arrivals: Arrival[], stalls: Stall[] = []): void {
    this.kept += arrivals.filter(({ isKept }) => isKept).length;
    const isNew = new Set(arrivals);
    const all = [...(this.#known.get(baseId) ?? []), ...arrivals].sort((a, b) => a.at - b.at);
    for (let [first, last] = [0, 0]; last < all.length; last++) {
      while (all[last]!.at - all[first]!.at >= WINDOW_MS) first++;
      const window = all.slice(first, last + 1);
      if (!window.some((one) => isNew.has(one))) continue;
      this.most = Math.max(this.most, window.length);
      if (window.length <= PER_WINDOW) continue;
      const earliest = earliestOf(window[0]!, stalls);
      const found = window.at(-1)!.at - earliest < WINDOW_MS ? this.violations : this.uncertain;
      found.push(`I4: ${describe(window, stalls)}, ${new Date(window[0]!.at).toISOString()}`);
    }
    const end = all.at(-1)?.at ?? 0;
    this.#known.set(
      baseId,
      all.filter(({ at }) => at > end - LATE_MS),
    );
  }
}

/** When a request may have arrived at the earliest, ms. */
function earliestOf({ at }: Arrival, stalls: Stall[]): number {
  const within = stalls.filter(({ isOwn, from, to }) => isOwn && from < at && at <= to + SEEN_MS);
  return Math.min(at, ...within.map(({ from }) => from));
}

/** The facts for an investigation. */
function describe(arrivals: Arrival[], stalls: Stall[]): string {
  const [first] = arrivals;
  const each = arrivals.map(
    ({ at, what, from, isKept }) =>
      `${(at - first!.at).toFixed(0)} ms ${from ? `${from}: ` : ""}${what}${isKept ? " (kept)" : ""}`,
  );
  const near = stalls.filter(({ from, to }) => to > first!.at - WINDOW_MS && from < arrivals.at(-1)!.at);
  const who = (isOwn: boolean) => (isOwn ? "the source stood still" : "something waited for a processor");
  const notes = near.map(
    ({ from, ms, isOwn }) => `${who(isOwn)} for ${ms.toFixed(0)} ms at ${(from - first!.at).toFixed(0)} ms`,
  );
  const note = notes.length > 0 ? `; ${notes.slice(0, 6).join(", ")}` : "";
  return `${arrivals.length} requests within a second: ${each.join(", ")}${note}`;
}
