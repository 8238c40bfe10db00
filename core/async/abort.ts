/** An abort of a part: it follows that of the whole, and leaves nothing behind when the part is over. */
import { BasetideError } from "../errors";

export interface LinkedAbort extends Disposable {
  /** Its reason is always `sync_stopped`. */
  signal: AbortSignal;
  abort(): void;
}

/** Aborts with `outer`, or by itself. To be disposed of. */
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
