/**
 * The limiter backend of a proxy: the control plane, and a window of this process alone while that is unavailable.
 *
 * Other proxies have one too, and they do not know of each other; each grants its own share of the source's rate
 * limit (see heartbeat.ts). Sync waits meanwhile.
 */
import { isBasetideError } from "../errors";
import { MOST_DROP_MS } from "../http/connections";
import { type LimiterBackend, reservationOf, wholeMs } from "./backend";
import type { QuotaClock } from "./clock";
import type { SharedBackend } from "./control-plane";
import type { Heartbeat } from "./heartbeat";

/**
 * Combines `shared` with the local window, which answers the calls that the control plane does not answer.
 *
 * I4. The first call that the control plane answers again shuts the key for a moment: other proxies may still be
 * granting by themselves.
 */
export function withFallback(
  shared: SharedBackend,
  local: () => FallbackLimiter,
  heartbeat: Heartbeat,
  clock: QuotaClock,
): LimiterBackend {
  const isLocal = new WeakSet<object>();
  let wasAway = false;
  let hasGranted = false;
  return {
    // Away from the control plane, `acquire` must be the first to reach it again.
    standing: shared.standing && {
      ...shared.standing,
      renew: async (...args) => (wasAway ? null : shared.standing!.renew(...args)),
    },
    async acquire(withinMs, back, margin, options) {
      try {
        if (wasAway) await shared.rejoin(hasGranted);
        wasAway = hasGranted = false;
        return await shared.acquire(withinMs, back, margin, options);
      } catch (error) {
        if (!isBasetideError(error, "control_unavailable") || heartbeat.share === 0) throw error;
        wasAway = true;
        const grant = await local().acquire(withinMs, back, margin);
        for (const reservation of grant.reservations) {
          if (!reservation) continue;
          isLocal.add(reservation);
          heartbeat.recordGrant(reservation.arrivesBy);
          hasGranted = true;
        }
        return grant;
      }
    },
    isVoid: (reservation) =>
      isLocal.has(reservation) ? local().isVoid(reservation) : shared.isVoid(reservation).catch(() => false),
    async reportLateSend(reservation) {
      if (!isLocal.has(reservation)) return shared.reportLateSend(reservation);
      heartbeat.recordGrant(clock.now() + reservation.marginMs);
      await local().reportLateSend(reservation);
    },
  };
}

export interface FallbackLimiter extends LimiterBackend {
  /** Grants `share` reservations per window and margin, and none before `atMs` on the clock. */
  open(share: number, atMs: number): void;
  /** Grants nothing before `atMs` on the clock. */
  pauseUntil(atMs: number): void;
  /** Whether its state equals that of a new one. */
  readonly isIdle: boolean;
}

/** Creates a window of the key's platform; it grants nothing until `open` is called. */
export function createFallbackLimiter(clock: QuotaClock, windowMs: number): FallbackLimiter {
  let perWindow = 0;
  /** The latest arrival times of the granted requests, as in the quota ledger. */
  let arrivals: number[] = [];
  let pausedUntilMs = -Infinity;

  function next(now: number, marginMs: number, dropMs: number): number {
    const window = (arrivals.at(-perWindow) ?? -Infinity) + windowMs + dropMs;
    return Math.max(now, pausedUntilMs, (arrivals.at(-1) ?? -Infinity) - marginMs, window);
  }

  function pauseUntil(atMs: number): void {
    pausedUntilMs = Math.max(pausedUntilMs, atMs);
    const now = clock.now();
    arrivals = arrivals.filter((arrivesBy) => arrivesBy <= now || arrivesBy >= pausedUntilMs);
  }

  function remove(arrivesBy: number): void {
    const index = arrivals.indexOf(arrivesBy);
    if (index >= 0) arrivals.splice(index, 1);
  }

  return {
    open(share, atMs) {
      perWindow = share;
      pauseUntil(atMs);
    },
    pauseUntil,
    async acquire(withinMs, back, margin) {
      const now = clock.now();
      const marginMs = wholeMs(margin);
      for (const arrivesBy of back) remove(arrivesBy);
      arrivals = arrivals.filter((arrivesBy) => arrivesBy > now - windowMs - MOST_DROP_MS);
      const reservations = withinMs.map((reach) => {
        const at = next(now, marginMs, margin.dropMs);
        if (at - now > reach) return null;
        arrivals.push(at + marginMs);
        return reservationOf(at + marginMs, marginMs, margin.delayMs, 0);
      });
      return { reservations, nextAt: next(now, marginMs, margin.dropMs) };
    },
    async isVoid(reservation) {
      return pausedUntilMs > reservation.at;
    },
    async reportLateSend({ arrivesBy, marginMs }) {
      remove(arrivesBy);
      arrivals = [...arrivals, clock.now() + marginMs].sort((a, b) => a - b);
    },
    get isIdle() {
      return Math.max(pausedUntilMs, (arrivals.at(-1) ?? -Infinity) + windowMs + MOST_DROP_MS) <= clock.now();
    },
  };
}
