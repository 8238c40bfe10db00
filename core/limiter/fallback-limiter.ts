/**
 * The book of a proxy: the ledger's, and while the control plane is away a window of this process alone.
 *
 * Other processes have one too and none knows of the others, so each gives out its share of what the source allows
 * (see heartbeat.ts). Sync rests meanwhile.
 */
import { isBasetideError } from "../errors";
import { type Book, placeOf, wholeMs } from "./backend";
import type { QuotaClock } from "./clock";
import type { SharedBook } from "./control-plane";
import type { Heartbeat } from "./heartbeat";

/**
 * `shared`, and the local window for each question that the control plane does not answer.
 *
 * I4. The first question that it answers again shuts the key for a moment: others may still be on their own.
 */
export function withFallback(
  shared: SharedBook,
  local: () => LocalWindow,
  heartbeat: Heartbeat,
  clock: QuotaClock,
): Book {
  const isLocal = new WeakSet<object>();
  let wasAway = false;
  let hasGranted = false;
  return {
    async take(withinMs, back, margin) {
      try {
        if (wasAway) await shared.reunite(hasGranted);
        wasAway = hasGranted = false;
        return await shared.take(withinMs, back, margin);
      } catch (error) {
        if (!isBasetideError(error, "control_unavailable") || heartbeat.share === 0) throw error;
        wasAway = true;
        const booking = await local().take(withinMs, back, margin);
        for (const place of booking.places) {
          if (!place) continue;
          isLocal.add(place);
          heartbeat.gaveOut(place.slot);
          hasGranted = true;
        }
        return booking;
      }
    },
    isVoid: (place) => (isLocal.has(place) ? local().isVoid(place) : shared.isVoid(place).catch(() => false)),
    async wentLate(place) {
      if (!isLocal.has(place)) return shared.wentLate(place);
      heartbeat.gaveOut(clock.now() + place.marginMs);
      await local().wentLate(place);
    },
  };
}

export interface LocalWindow extends Book {
  /** Gives out `share` places in a second and a margin, and none before `atMs` on the clock. */
  open(share: number, atMs: number): void;
  /** Gives out nothing before `atMs` on the clock. */
  shutUntil(atMs: number): void;
  /** Does it know nothing that a new one would not? */
  readonly isIdle: boolean;
}

/** A window of the key's platform that gives out nothing before it is opened. */
export function localWindow(clock: QuotaClock, windowMs: number): LocalWindow {
  let perWindow = 0;
  /** When each call has reached the source at the latest, as in the ledger. */
  let slots: number[] = [];
  let shutUntilMs = -Infinity;

  function next(now: number, marginMs: number): number {
    const window = (slots.at(-perWindow) ?? -Infinity) + windowMs;
    return Math.max(now, shutUntilMs, (slots.at(-1) ?? -Infinity) - marginMs, window);
  }

  function shutUntil(atMs: number): void {
    shutUntilMs = Math.max(shutUntilMs, atMs);
    const now = clock.now();
    slots = slots.filter((slot) => slot <= now || slot >= shutUntilMs);
  }

  function remove(slot: number): void {
    const index = slots.indexOf(slot);
    if (index >= 0) slots.splice(index, 1);
  }

  return {
    open(share, atMs) {
      perWindow = share;
      shutUntil(atMs);
    },
    shutUntil,
    async take(withinMs, back, margin) {
      const now = clock.now();
      const marginMs = wholeMs(margin);
      for (const slot of back) remove(slot);
      slots = slots.filter((slot) => slot > now - windowMs);
      const places = withinMs.map((reach) => {
        const at = next(now, marginMs);
        if (at - now > reach) return null;
        slots.push(at + marginMs);
        return placeOf(at + marginMs, marginMs, margin.delayMs, 0);
      });
      return { places, nextAt: next(now, marginMs) };
    },
    async isVoid(place) {
      return shutUntilMs > place.at;
    },
    async wentLate({ slot, marginMs }) {
      remove(slot);
      slots = [...slots, clock.now() + marginMs].sort((a, b) => a - b);
    },
    get isIdle() {
      return Math.max(shutUntilMs, (slots.at(-1) ?? -Infinity) + windowMs) <= clock.now();
    },
  };
}
