/**
 * The book that clients are served from while the control plane is away: a window of this process alone.
 *
 * Other processes have one too and none knows of the others, so each gives out its share of what the source allows
 * (see attendance.ts). Sync rests meanwhile. An answer takes no time here, so places are good for their own time only.
 */
import { type Book, WINDOW_MS } from "./book";
import type { QuotaClock } from "./clock";

export interface LocalWindow extends Book {
  /** Gives out `share` places in 1,025 ms, and none before `atMs` on the clock. */
  open(share: number, atMs: number): void;
  /** Gives out nothing before `atMs` on the clock. */
  shutUntil(atMs: number): void;
  /** Does it know nothing that a new one would not? */
  readonly isIdle: boolean;
}

/** A window that gives out nothing before it is opened. */
export function localWindow(clock: QuotaClock): LocalWindow {
  let perWindow = 0;
  let slots: number[] = [];
  let shutUntilMs = -Infinity;

  function next(now: number): number {
    return Math.max(now, shutUntilMs, slots.at(-1) ?? now, (slots.at(-perWindow) ?? -Infinity) + WINDOW_MS);
  }

  function shutUntil(atMs: number): void {
    shutUntilMs = Math.max(shutUntilMs, atMs);
    const now = clock.now();
    slots = slots.filter((slot) => slot <= now || slot >= shutUntilMs);
  }

  return {
    open(share, atMs) {
      perWindow = share;
      shutUntil(atMs);
    },
    shutUntil,
    async take(withinMs, back) {
      const now = clock.now();
      for (const slot of back) {
        const index = slots.indexOf(slot);
        if (index >= 0) slots.splice(index, 1);
      }
      slots = slots.filter((slot) => slot > now - WINDOW_MS);
      const places = withinMs.map((reach) => {
        const slot = next(now);
        if (slot - now > reach) return null;
        slots.push(slot);
        return { at: slot, until: slot, slot };
      });
      return { places, nextAt: next(now) };
    },
    async isVoid(place) {
      return shutUntilMs > place.at;
    },
    async wentLate(place) {
      const index = slots.indexOf(place.slot);
      if (index >= 0) slots.splice(index, 1);
      slots = [...slots, clock.now()].sort((a, b) => a - b);
    },
    get isIdle() {
      return Math.max(shutUntilMs, (slots.at(-1) ?? -Infinity) + WINDOW_MS) <= clock.now();
    },
  };
}
