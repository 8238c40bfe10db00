/** Abort signals that follow an outer signal, waits that can be aborted, and the pauses between attempts. */
import { BasetideError } from "../errors";

export interface LinkedAbort extends Disposable {
  /** The abort reason is always `sync_stopped`. */
  signal: AbortSignal;
  abort(): void;
}

/** Aborts with `outer`, or by itself. Dispose of it when the work is done: this removes its listener. */
export function linkedAbort(outer: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  const abort = () => controller.abort(new BasetideError("sync_stopped"));
  if (outer.aborted) abort();
  else outer.addEventListener("abort", abort, { once: true });
  return {
    signal: controller.signal,
    abort,
    [Symbol.dispose]: () => outer.removeEventListener("abort", abort),
  };
}

/**
 * Waits `ms` milliseconds.
 *
 * @throws BasetideError `sync_stopped` as soon as `signal` aborts
 */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopped = () => {
      clearTimeout(timer);
      reject(new BasetideError("sync_stopped"));
    };
    if (signal.aborted) return reject(new BasetideError("sync_stopped"));
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stopped);
      resolve();
    }, ms);
    signal.addEventListener("abort", stopped, { once: true });
  });
}

/** Returns a pause: doubles from `firstMs` to `maxMs` with each attempt (from 1), and is jittered by half. */
export function jittered(attempt: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** (attempt - 1)) * (0.5 + Math.random());
}
