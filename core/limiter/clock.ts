/** The clock of this process that reservations are kept by; tests bring their own, which jumps. */

export interface QuotaClock {
  /** ms on a scale of its own that never goes back. */
  now(): number;
  /** Calls `wake` once, at `atMs` or as soon after it as the process gets to it; returns how to cancel that. */
  at(atMs: number, wake: () => void): () => void;
}

export const processClock: QuotaClock = {
  now: () => performance.now(),
  at: (atMs, wake) => {
    const timer = setTimeout(wake, Math.max(0, Math.ceil(atMs - performance.now())));
    return () => clearTimeout(timer);
  },
};
