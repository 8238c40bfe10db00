/**
 * Tells leases what people change about their bases while a sync is running: settings, the API key, a pause, a
 * deletion, a sync or a schema check that is asked for.
 *
 * One query a second for all bases that a worker holds. Not a notification, which could get lost and would have to be
 * backed by the same query.
 */
import type { Context } from "../../context";
import { type SyncFacts, syncFacts } from "../../control/bases";

const POLL_MS = 1000;

/** Told once a second of the base as it is; undefined when it is gone. */
export type OnFacts = (facts: SyncFacts | undefined) => void;

export class SettingsWatch {
  #ctx: Pick<Context, "db" | "log">;
  #watched = new Map<string, Set<OnFacts>>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ctx: Pick<Context, "db" | "log">) {
    this.#ctx = ctx;
  }

  /** Until what is returned is disposed of. */
  watch(baseId: string, onFacts: OnFacts): Disposable {
    const told = this.#watched.get(baseId) ?? new Set();
    this.#watched.set(baseId, told.add(onFacts));
    this.#timer ??= setTimeout(() => this.#poll(), POLL_MS);
    return {
      [Symbol.dispose]: () => {
        told.delete(onFacts);
        if (told.size === 0 && this.#watched.get(baseId) === told) this.#watched.delete(baseId);
      },
    };
  }

  async #poll(): Promise<void> {
    const asked = [...this.#watched.keys()];
    if (asked.length === 0) {
      this.#timer = undefined;
      return;
    }
    try {
      const facts = new Map((await syncFacts(this.#ctx.db, asked)).map((one) => [one.id, one]));
      for (const id of asked) for (const tell of this.#watched.get(id) ?? []) tell(facts.get(id));
    } catch (error) {
      this.#ctx.log.debug({ error }, "settings not looked at");
    }
    this.#timer = setTimeout(() => this.#poll(), POLL_MS);
  }
}
