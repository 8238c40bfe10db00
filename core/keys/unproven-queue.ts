/**
 * The wait queue of requests with unproven keys, for all bases of a process.
 *
 * U1. One request at a time per base and key, and per base and client network; the number per network and in total
 * is limited.
 *
 * U2. When the queue is full, a request from a network with fewer entries replaces the newest waiting request of
 * the network that has the most: one network cannot exclude the others.
 *
 * U3. Bases and networks are served in order of least recent service, so that none can delay another by sending
 * more.
 */
import { RateWindow } from "../http";
import { LruMap } from "../lru-map";

interface UnprovenLimits {
  /** Entries, waiting or being served, over all bases and networks. */
  most: number;
  mostPerNetwork: number;
  /** Requests served at the same time for one base; the others stay in the queue. */
  servedPerBase: number;
  /** Requests from one network, regardless of their outcome. */
  perMinute: number;
}

const LIMITS: UnprovenLimits = { most: 50, mostPerNetwork: 10, servedPerBase: 4, perMinute: 120 };
const MAX_NETWORKS = 5000;

interface Unproven {
  sourceBaseId: string;
  /** Identifies the key and the base. */
  keyHash: string;
  network: string;
}

/**
 * `served`: the request may go on, and ends with `leave`. `decided`: the source has answered another request with
 * this key, so the caller checks the key again. `full`: there is no room in the queue.
 */
export type Entrance = { kind: "served"; leave(): void } | { kind: "decided" } | { kind: "full" };

interface Entry extends Unproven {
  isServed: boolean;
  settle(entrance: Entrance): void;
}

export class UnprovenQueue {
  readonly #limits: UnprovenLimits;
  readonly #entries = new Set<Entry>();
  readonly #arrivals: RateWindow;
  /** When each network of a base was last served, as a sequence number. */
  readonly #servedAs = new LruMap<string, number>(MAX_NETWORKS);
  #served = 0;

  constructor(limits: Partial<UnprovenLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
    this.#arrivals = new RateWindow(this.#limits.perMinute, 60_000);
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * @param signalOf creates the request's signal; called only if there is room, so that a flood of requests costs little
   * @throws the signal's reason
   */
  enter(unproven: Unproven, signalOf: () => AbortSignal): Promise<Entrance> {
    if (this.#arrivals.take(unproven.network) > 0 || !this.#hasRoom(unproven.network)) {
      return Promise.resolve({ kind: "full" });
    }
    const signal = signalOf();
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const abandon = () => {
        this.#leave(entry);
        reject(signal.reason);
      };
      const entry: Entry = {
        ...unproven,
        isServed: false,
        settle: (entrance) => {
          signal.removeEventListener("abort", abandon);
          resolve(entrance);
        },
      };
      signal.addEventListener("abort", abandon, { once: true });
      this.#entries.add(entry);
      this.#serve();
    });
  }

  /** Dismisses the requests that wait with this key, because the source has accepted or refused it. */
  decided(keyHash: string): void {
    for (const entry of this.#entries) {
      if (entry.keyHash === keyHash && !entry.isServed) this.#dismiss(entry, "decided");
    }
  }

  /** Returns whether there is room, and makes some where that is fair (U2). */
  #hasRoom(network: string): boolean {
    const counts = new Map<string, number>();
    for (const entry of this.#entries) counts.set(entry.network, (counts.get(entry.network) ?? 0) + 1);
    const own = counts.get(network) ?? 0;
    if (own >= this.#limits.mostPerNetwork) return false;
    if (this.#entries.size < this.#limits.most) return true;
    const [largest, most] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
    if (most <= own + 1) return false;
    const newest = [...this.#entries].findLast((entry) => entry.network === largest && !entry.isServed);
    if (!newest) return false;
    this.#dismiss(newest, "full");
    return true;
  }

  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const entry = next;
      entry.isServed = true;
      this.#servedAs.set(turnOf(entry), ++this.#served);
      entry.settle({ kind: "served", leave: () => this.#leave(entry) });
    }
  }

  #next(): Entry | undefined {
    const served = [...this.#entries].filter((entry) => entry.isServed);
    let next: Entry | undefined;
    for (const entry of this.#entries) {
      if (entry.isServed || !this.#mayBeServed(entry, served)) continue;
      if (!next || this.#order(entry) < this.#order(next)) next = entry;
    }
    return next;
  }

  #mayBeServed(entry: Entry, served: Entry[]): boolean {
    const sameBase = served.filter((other) => other.sourceBaseId === entry.sourceBaseId);
    return (
      sameBase.length < this.#limits.servedPerBase &&
      sameBase.every((other) => other.keyHash !== entry.keyHash && other.network !== entry.network)
    );
  }

  #order(entry: Entry): number {
    return this.#servedAs.get(turnOf(entry)) ?? 0;
  }

  #dismiss(entry: Entry, kind: "decided" | "full"): void {
    this.#entries.delete(entry);
    entry.settle({ kind });
  }

  #leave(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#serve();
  }
}

function turnOf({ sourceBaseId, network }: Unproven): string {
  return `${sourceBaseId} ${network}`;
}
