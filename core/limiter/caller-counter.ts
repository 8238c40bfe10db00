/**
 * Counts clients' requests by key and caller in memory, and stores the counts every few seconds, for display.
 *
 * CC1. A reservation costs an addition here, and nothing in the control plane: one statement stores all counts.
 * CC2. A base has at most MOST_CALLERS rows a day, those with the most calls: the others are only in its total.
 */
import { withTimeout } from "../async";
import type { Db } from "../context";
import type { Logger } from "../log";
import type { QuotaKey } from "./backend";

const FLUSH_MS = 10_000;
/** A control plane that does not answer must not hold up the end of a process, ms. */
const STORE_MS = 3000;
export const MOST_CALLERS = 10;
/** Callers of one key in memory; more would not be stored. */
const MOST_COUNTED = 2 * MOST_CALLERS;
/** Keys in memory: those of a process that cannot store its counts. */
const MOST_KEYS = 5000;

export class CallerCounter {
  readonly #ctx: { db: Db; log: Logger };
  #calls = new Map<QuotaKey, Map<string, number>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor(ctx: { db: Db; log: Logger }) {
    this.#ctx = ctx;
  }

  /** @param caller `own`, `console`, or the first letters of a key */
  count(key: QuotaKey, caller: string): void {
    this.#add(key, caller, 1);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Stores the counts; keeps those that cannot be stored for the next flush. Never fails. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushing = this.#flushing.then(() => this.#store());
    return this.#flushing;
  }

  async #store(): Promise<void> {
    const rows = [...this.#calls].flatMap(([key, callers]) =>
      [...callers].map(([caller, calls]) => ({ key, caller, calls })),
    );
    this.#calls = new Map();
    if (rows.length === 0) return;
    try {
      const stored = this.#ctx.db`
        select quota_count_callers(${JSON.stringify(rows)}::text::jsonb, ${MOST_CALLERS})`;
      // Late counts may still be stored: they are not kept, or they would count twice.
      await withTimeout(STORE_MS, () => undefined, stored);
    } catch (error) {
      this.#ctx.log.debug({ error }, "saving calls by caller failed");
      for (const { key, caller, calls } of rows) this.#add(key, caller, calls);
    }
  }

  #add(key: QuotaKey, caller: string, calls: number): void {
    const callers = this.#calls.get(key) ?? new Map<string, number>();
    if (!callers.has(caller) && callers.size >= MOST_COUNTED) return;
    if (callers.size === 0 && this.#calls.size >= MOST_KEYS) return;
    this.#calls.set(key, callers.set(caller, (callers.get(caller) ?? 0) + calls));
  }
}
