/**
 * Requests of this process to itself that must be recorded before they are sent. They are prepared meanwhile: the wait for the
 * record and the wait for a permit and a read version are one.
 */
const records = new WeakMap<Request, Promise<boolean>>();

/** @param isRecorded false: the request must not be sent */
export function sendOnceRecorded(request: Request, isRecorded: Promise<boolean>): void {
  records.set(request, isRecorded);
}

/** Returns what the request waits for; undefined: nothing. */
export function recordOf(request: Request): Promise<boolean> | undefined {
  return records.get(request);
}
