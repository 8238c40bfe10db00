/** Abort signals that follow an outer signal, and waits that can be aborted. */
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
