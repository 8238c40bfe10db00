/** One id per request, in every log line that the request causes, at any depth, without passing it on. */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";

/** Text that is safe to log unchanged. */
const SAFE_ID = /^[\w.:-]{1,64}$/;

const current = new AsyncLocalStorage<string>();

/** Returns the id of the current request. */
export function requestId(): string | undefined {
  return current.getStore();
}

/** Runs `work` as part of the request `given` (a client's `x-request-id`), or of a request with a new id. */
export function withRequestId<T>(given: string | null | undefined, work: () => T): T {
  return current.run(given && SAFE_ID.test(given) ? given : randomUUID(), work);
}
