/** Counts sync's requests by key, month and purpose, and stores the counts every few seconds. */
import type { Db } from "../context";
import type { Logger } from "../log";
import type { QuotaKey } from "./backend";

const FLUSH_MS = 10_000;

interface Tally {
  keys: readonly QuotaKey[];
  /** By purpose. */
  calls: Map<string, number>;
}

export class CallCounter {
  readonly #ctx: { db: Db; log: Logger };
  /** What the counting functions have counted since the last flush. */
  #counted: Tally[] = [];
  /** What could not be stored. */
  #left = new Map<QuotaKey, Map<string, number>>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ctx: { db: Db; log: Logger }) {
    this.#ctx = ctx;
  }

  /** Returns a function that counts a call of a purpose, for each of the keys. It is called for every request. */
  counting(keys: readonly QuotaKey[]): (kind: string) => void {
    const calls: Tally["calls"] = new Map();
    return (kind) => {
      if (calls.size === 0) {
        this.#counted.push({ keys, calls });
        this.#flushLater();
      }
      calls.set(kind, (calls.get(kind) ?? 0) + 1);
    };
  }

  #flushLater(): void {
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
  }

  /** Stores the counts; keeps those that cannot be stored for the next flush. Never fails. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const counted = this.#left;
    this.#left = new Map();
    for (const { keys, calls } of this.#counted.splice(0)) {
      for (const key of keys) for (const [kind, count] of calls) add(counted, key, kind, count);
      calls.clear();
    }
    const rows = [...counted].flatMap(([key, kinds]) =>
      [...kinds].map(([kind, calls]) => ({ key, kind, calls })),
    );
    if (rows.length === 0) return;
    // Workers that write the same rows must lock them in the same order.
    rows.sort((a, b) => (a.key === b.key ? order(a.kind, b.kind) : order(a.key, b.key)));
    try {
      await this.#ctx.db`
        insert into quota_kinds as k (key, month, kind, calls)
        select c.key, date_trunc('month', now() at time zone 'UTC')::date, c.kind, c.calls
        from json_to_recordset(${JSON.stringify(rows)}::text::json) as c (key text, kind text, calls bigint)
        on conflict (key, month, kind) do update set calls = k.calls + excluded.calls`;
    } catch (error) {
      this.#ctx.log.debug({ error }, "saving calls by kind failed");
      for (const { key, kind, calls } of rows) add(this.#left, key, kind, calls);
      this.#flushLater();
    }
  }

  /** Flushes for the last time. */
  async stop(): Promise<void> {
    await this.flush();
    clearTimeout(this.#timer);
  }
}

function order(a: string, b: string): number {
  return a < b ? -1 : 1;
}

function add(to: Map<string, Map<string, number>>, key: string, kind: string, calls: number): void {
  const kinds = to.get(key);
  if (kinds) kinds.set(kind, (kinds.get(kind) ?? 0) + calls);
  else to.set(key, new Map([[kind, calls]]));
}
