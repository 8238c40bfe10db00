/**
 * Listens to signals that many short operations share, as all requests of a lease do: a signal gets one listener,
 * however many operations begin and end. Adding and removing one for each costs as much as parsing its answer's head.
 */

/** Not Sets: see "Sets and Maps that many requests pass through" in docs/performance.md. */
const callbacksOf = new WeakMap<AbortSignal, (() => void)[]>();

/** Calls `callback` once if `signal` aborts, unless `offAbort` is called before. An aborted signal calls nothing. */
export function onAbort(signal: AbortSignal, callback: () => void): void {
  const known = callbacksOf.get(signal);
  if (known) {
    known.push(callback);
    return;
  }
  const callbacks = [callback];
  callbacksOf.set(signal, callbacks);
  const callAll = () => {
    for (let one = callbacks.shift(); one; one = callbacks.shift()) one();
  };
  signal.addEventListener("abort", callAll, { once: true });
}

export function offAbort(signal: AbortSignal, callback: () => void): void {
  const callbacks = callbacksOf.get(signal);
  const index = callbacks?.lastIndexOf(callback) ?? -1;
  if (index >= 0) callbacks!.splice(index, 1);
}
