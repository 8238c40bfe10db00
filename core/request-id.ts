/** One id per request, in every log line that it causes, however deep: nobody has to pass it on. */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";

/** What may go into a log line as it came. */
const SAFE_ID = /^[\w.:-]{1,64}$/;

const current = new AsyncLocalStorage<string>();

/** The id of the request that is being worked on. */
export function requestId(): string | undefined {
  return current.getStore();
}

/** Runs `work` as part of the request `given` (a client's `x-request-id`), or of one with an id of our own. */
export function withRequestId<T>(given: string | null | undefined, work: () => T): T {
  return current.run(given && SAFE_ID.test(given) ? given : randomUUID(), work);
}
