/** The offset from a server's clock to this process's clock, from the times in the server's answers. */
import type { QuotaClock } from "./clock";

/** How long the smallest offset is remembered, ms; a clock drifts by less than 2 ms in that time. */
const OFFSET_MEMORY_MS = 10_000;

interface ClockOffset {
  /** Takes the time of a server's answer; returns the offset from the server's clock to this process's clock. */
  learn(serverNow: number): number;
  /** The offset that `learn` returned last. */
  readonly ms: number;
  /** Whether an answer was seen recently. */
  readonly isKnown: boolean;
}

/** Tracks the smallest offset of the last 10 to 20 s: delays only ever make it larger. */
export function clockOffset(clock: QuotaClock): ClockOffset {
  let [before, least, since] = [Infinity, Infinity, -Infinity];
  return {
    learn(serverNow) {
      const now = clock.now();
      if (now - since > OFFSET_MEMORY_MS) {
        [before, least, since] = [this.isKnown ? least : Infinity, Infinity, now];
      }
      least = Math.min(least, now - serverNow);
      return this.ms;
    },
    get ms() {
      return Math.min(before, least);
    },
    get isKnown() {
      return clock.now() - since <= 2 * OFFSET_MEMORY_MS;
    },
  };
}
