/** Waiting that can be called off. */
import { BasetideError } from "../errors";

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
