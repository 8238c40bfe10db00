/**
 * Listens to signals that many short operations share, as all requests of a lease do: a signal gets one listener,
 * however many operations begin and end. Adding and removing one for each costs as much as parsing its answer's head.
 */

const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `callback` once if `signal` aborts, unless `offAbort` is called before. An aborted signal calls nothing. */
export function onAbort(signal: AbortSignal, callback: () => void): void {
  const known = callbacksOf.get(signal);
  if (known) {
    known.add(callback);
    return;
  }
  const callbacks = new Set([callback]);
  callbacksOf.set(signal, callbacks);
  const callAll = () => {
    for (const one of callbacks) {
      callbacks.delete(one);
      one();
    }
  };
  signal.addEventListener("abort", callAll, { once: true });
}

export function offAbort(signal: AbortSignal, callback: () => void): void {
  callbacksOf.get(signal)?.delete(callback);
}
