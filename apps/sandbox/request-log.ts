/**
 * The log of API requests, each with its arrival on the performance clock.
 */

/** Beyond this many, older entries are dropped; the summary still counts them. */
const MAX_ENTRIES = 200_000;
const WINDOW_MS = 1000;

export interface LogEntry {
  /** On the sandbox's performance clock, ms. */
  arrivalMs: number;
  /** The port of its connection at the client's end. */
  clientPort: number;
  method: string;
  /** As received, with the query; for a list by POST, also with the beginning of its body. */
  path: string;
  baseId?: string;
  tokenId?: string;
  /** 0 while the request is being answered. */
  status: number;
  /** The fault that was applied, if any. */
  fault?: string;
}

interface BaseCalls {
  requests: number;
  /** The most arrivals within any 1,000 ms, refused ones included. */
  maxPerSecond: number;
  rateLimited: number;
}

export interface LogSummary {
  requests: number;
  rateLimited: number;
  byStatus: Record<string, number>;
  bases: Record<string, BaseCalls>;
}

export class RequestLog {
  #entries: LogEntry[] = [];
  #byStatus = new Map<number, number>();
  #bases = new Map<string, BaseCalls & { recent: number[] }>();
  #requests = 0;

  arrived(entry: LogEntry): void {
    this.#requests += 1;
    this.#entries.push(entry);
    if (this.#entries.length > MAX_ENTRIES * 1.1) this.#entries = this.#entries.slice(-MAX_ENTRIES);
    if (entry.baseId !== undefined) this.#countArrival(entry.baseId, entry.arrivalMs);
  }

  answered(entry: LogEntry, status: number): void {
    entry.status = status;
    this.#byStatus.set(status, (this.#byStatus.get(status) ?? 0) + 1);
    const base = entry.baseId === undefined ? undefined : this.#bases.get(entry.baseId);
    if (base && status === 429) base.rateLimited += 1;
  }

  #countArrival(baseId: string, arrivalMs: number): void {
    let base = this.#bases.get(baseId);
    if (!base) {
      base = { requests: 0, maxPerSecond: 0, rateLimited: 0, recent: [] };
      this.#bases.set(baseId, base);
    }
    base.requests += 1;
    const { recent } = base;
    recent.push(arrivalMs);
    let gone = 0;
    while (arrivalMs - recent[gone]! >= WINDOW_MS) gone += 1;
    if (gone > 0) recent.splice(0, gone);
    base.maxPerSecond = Math.max(base.maxPerSecond, recent.length);
  }

  entries(baseId?: string): LogEntry[] {
    return baseId === undefined
      ? [...this.#entries]
      : this.#entries.filter((entry) => entry.baseId === baseId);
  }

  summary(): LogSummary {
    const bases: Record<string, BaseCalls> = {};
    for (const [id, { requests, maxPerSecond, rateLimited }] of this.#bases)
      bases[id] = { requests, maxPerSecond, rateLimited };
    return {
      requests: this.#requests,
      rateLimited: this.#byStatus.get(429) ?? 0,
      byStatus: Object.fromEntries(this.#byStatus),
      bases,
    };
  }

  clear(): void {
    this.#entries = [];
    this.#byStatus.clear();
    this.#bases.clear();
    this.#requests = 0;
  }
}
