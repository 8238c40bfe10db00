/**
 * Looks up values by key for requests that anyone may send.
 *
 * One look-up is under way at a time. Keys that are asked for meanwhile share the next one, so that a flood of requests
 * runs no more statements than one client that waits for each answer, uses one connection, and refuses no client.
 */
import { withTimeout } from "./timeout";

/** A look-up that hangs must not delay later ones for longer, ms. */
const LOOKUP_MS = 5000;

export class SharedLookup<Value> {
  readonly #find: (keys: string[]) => Promise<Map<string, Value>>;
  #last: Promise<unknown> = Promise.resolve();
  #next: { keys: Set<string>; found: Promise<Map<string, Value>> } | undefined;

  /** @param find returns the values of those keys that have one. No key may make it fail: it would fail for all */
  constructor(find: (keys: string[]) => Promise<Map<string, Value>>) {
    this.#find = find;
  }

  /** @throws BasetideError `control_unavailable` if there is no answer in time; the errors of the look-up */
  async get(key: string): Promise<Value | undefined> {
    this.#next ??= this.#begin();
    this.#next.keys.add(key);
    return (await this.#next.found).get(key);
  }

  #begin() {
    const keys = new Set<string>();
    const found = this.#last.then(() => {
      this.#next = undefined;
      return withTimeout(LOOKUP_MS, "control_unavailable", this.#find([...keys]));
    });
    this.#last = found.catch(() => {});
    return { keys, found };
  }
}
