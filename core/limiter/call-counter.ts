/**
 * Counts requests in memory by key, purpose and caller, and stores the counts every few seconds.
 *
 * A request costs an addition here, and nothing in the control plane: one statement stores all counts of a process.
 */
import postgres from "postgres";
import { withTimeout } from "../async";
import type { Db } from "../context";
import type { Logger } from "../log";

const FLUSH_MS = 10_000;
/** A control plane that does not answer must not hold up the end of a process, ms. */
const STORE_MS = 3000;
/** Callers of a key that are stored for a day: those with the most calls. The others are only in its total. */
export const MOST_CALLERS = 10;
/** Keys in memory: those of a process that cannot store its counts. */
const MOST_KEYS = 5000;

interface Tally {
  sync: number;
  client: number;
  /** Sync's calls by purpose, and clients' calls by caller. */
  kinds: Record<string, number>;
  callers: Record<string, number>;
}

export class CallCounter {
  readonly #ctx: { db: Db; log: Logger };
  #tallies = new Map<string, Tally>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor(ctx: { db: Db; log: Logger }) {
    this.#ctx = ctx;
  }

  sync(key: string): void {
    this.#add(key, { sync: 1 });
  }

  /** @param caller `own`, `console`, or the first letters of a key */
  client(key: string, caller: string | undefined): void {
    this.#add(key, { client: 1, callers: caller === undefined ? {} : { [caller]: 1 } });
  }

  /** Returns a function that counts a call of a purpose, for each of the keys. It is called for every request. */
  counting(keys: readonly string[]): (kind: string) => void {
    return (kind) => {
      for (const key of keys) this.#add(key, { kinds: { [kind]: 1 } });
    };
  }

  #add(key: string, { sync = 0, client = 0, kinds = {}, callers = {} }: Partial<Tally>): void {
    const known = this.#tallies.get(key);
    if (!known && this.#tallies.size >= MOST_KEYS) return;
    const tally = known ?? { sync: 0, client: 0, kinds: {}, callers: {} };
    if (!known) this.#tallies.set(key, tally);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
    tally.sync += sync;
    tally.client += client;
    for (const kind in kinds) tally.kinds[kind] = (tally.kinds[kind] ?? 0) + kinds[kind]!;
    for (const caller in callers)
      if (caller in tally.callers || Object.keys(tally.callers).length < 2 * MOST_CALLERS)
        tally.callers[caller] = (tally.callers[caller] ?? 0) + callers[caller]!;
  }

  /** Stores the counts; keeps those that are not stored for the next flush. Never fails. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushing = this.#flushing.then(() => this.#store());
    return withTimeout(STORE_MS, () => undefined, this.#flushing);
  }

  async #store(): Promise<void> {
    const tallies = this.#tallies;
    if (tallies.size === 0) return;
    this.#tallies = new Map();
    const rows = [...tallies].map(([key, tally]) => ({ key, ...tally }));
    const statement = this.#ctx.db`select quota_count(${JSON.stringify(rows)}::text::jsonb, ${MOST_CALLERS})`;
    try {
      await statement;
    } catch (error) {
      this.#ctx.log.debug({ error }, "saving counts of calls failed");
      // If the answer was lost, they may have been stored: they would count twice.
      const { state } = statement as unknown as { state: object | null };
      if (state && !(error instanceof postgres.PostgresError)) return;
      for (const [key, tally] of tallies) this.#add(key, tally);
    }
  }
}
