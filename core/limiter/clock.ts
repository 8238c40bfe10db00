/** The process clock that the limiter uses; tests bring their own, which jumps. */

export interface QuotaClock {
  /** Returns ms on a monotonic scale. */
  now(): number;
  /** Calls `wake` once, at `atMs` or as soon after it as the process can; returns a function that cancels it. */
  at(atMs: number, wake: () => void): () => void;
  /** Calls `check` when a request that has just been released has been sent, or will not be. */
  onceSent(check: () => void): void;
}

export const processClock: QuotaClock = {
  now: () => performance.now(),
  at: (atMs, wake) => {
    const timer = setTimeout(wake, Math.max(0, Math.ceil(atMs - performance.now())));
    return () => clearTimeout(timer);
  },
  // The callbacks of its promise send it, and a tick that a later one of them requests comes after all of them.
  onceSent: (check) => queueMicrotask(() => process.nextTick(check)),
};
