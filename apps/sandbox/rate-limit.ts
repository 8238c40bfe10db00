/**
 * The throttle: limits the requests in any second for one base, and for one user.
 *
 * R1. The window is exact and slides: of the requests that were let through, no limit + 1 arrived within less than
 *     1,000 ms. A request over the limit is refused and blocks the base for the penalty.
 */
import type { Settings } from "./settings";

const WINDOW_MS = 1000;

class Window {
  /** The arrivals of the last requests that were let through, oldest first. */
  readonly #arrivals: number[] = [];
  blockedUntilMs = 0;

  /** Counts an arrival at `nowMs`; false if the window is full. */
  take(nowMs: number, limit: number): boolean {
    const arrivals = this.#arrivals;
    if (arrivals.length >= limit && nowMs - arrivals[arrivals.length - limit]! < WINDOW_MS) return false;
    arrivals.push(nowMs);
    while (arrivals.length > limit) arrivals.shift();
    return true;
  }
}

export class KeyRateLimiter {
  readonly #bases = new Map<string, Window>();
  readonly #users = new Map<string, Window>();

  /**
   * Returns whether a request is let through.
   *
   * @param arrivalMs on a clock that never goes back
   * @param baseId absent for calls that name no base; only the user's limit applies to them
   * @param perBase requests a second to the base
   */
  admits(
    settings: Settings,
    arrivalMs: number,
    userId: string,
    baseId: string | undefined,
    perBase = settings.requestsPerSecondPerBase,
  ): boolean {
    if (settings.rateLimitOff || (baseId && settings.unlimitedBases.includes(baseId))) return true;
    const user = windowOf(this.#users, userId);
    if (!user.take(arrivalMs, settings.requestsPerSecondPerUser)) return false;
    if (baseId === undefined) return true;
    const base = windowOf(this.#bases, baseId);
    if (arrivalMs < base.blockedUntilMs) {
      if (settings.penaltyExtends) base.blockedUntilMs = arrivalMs + settings.penaltyMs;
      return false;
    }
    if (base.take(arrivalMs, perBase)) return true;
    base.blockedUntilMs = arrivalMs + settings.penaltyMs;
    return false;
  }

  /** Blocks a base for the penalty, as after a request over its limit. */
  refuse(settings: Settings, arrivalMs: number, baseId: string): void {
    windowOf(this.#bases, baseId).blockedUntilMs = arrivalMs + settings.penaltyMs;
  }

  /** Clears arrivals and penalties, of one base or of all. */
  reset(baseId?: string): void {
    if (baseId !== undefined) {
      this.#bases.delete(baseId);
      return;
    }
    this.#bases.clear();
    this.#users.clear();
  }
}

function windowOf(windows: Map<string, Window>, key: string): Window {
  let window = windows.get(key);
  if (!window) {
    window = new Window();
    windows.set(key, window);
  }
  return window;
}
