/**
 * The wait queue of requests with unproven keys, for all bases of a process.
 *
 * U1. One request at a time per base and key, and per base and client network; the number per network, per base and in
 * total is limited.
 *
 * U2. When a base's queue, or the whole, is full, the newest waiting request of the largest network makes room
 * (`SharedBudget`): one client cannot exclude the others, however many addresses it has.
 *
 * U3. Bases and networks are served in order of least recent service, wider networks first, so that none can delay
 * another by sending more. Networks whose key the source has just refused for the base come after all others, and make
 * room first.
 */
import { type BudgetShare, networksAround, RateWindow, SharedBudget } from "../http";
import { LruMap } from "../lru-map";
import { MOST_REMEMBERED } from "./key-hash";

interface UnprovenLimits {
  /** Entries, waiting or being served, over all bases and networks. */
  most: number;
  mostPerBase: number;
  mostPerNetwork: number;
  /** Requests served at the same time for one base; the others stay in the queue. */
  servedPerBase: number;
  /** Requests from one network, regardless of their outcome. */
  perMinute: number;
}

const LIMITS: UnprovenLimits = {
  most: 2000,
  mostPerBase: 50,
  mostPerNetwork: 10,
  servedPerBase: 4,
  perMinute: 120,
};
/** How long a network stays behind others after a refusal, ms. */
const REFUSED_MS = 10 * 60_000;

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
export type Entrance =
  | { kind: "served"; leave(isRefused?: boolean): void }
  | { kind: "decided" }
  | { kind: "full" };

interface Entry extends Unproven {
  isServed: boolean;
  place: BudgetShare;
  settle(entrance: Entrance): void;
}

export class UnprovenQueue {
  readonly #limits: UnprovenLimits;
  /** The entries of each base, in the order they came. */
  readonly #ofBases = new Map<string, Set<Entry>>();
  readonly #places: SharedBudget<"base">;
  readonly #arrivals: RateWindow;
  /** When each network of a base was last served, as a sequence number. */
  readonly #servedAs = new LruMap<string, number>(MOST_REMEMBERED);
  /** When the source last refused a key of each network for a base, ms. */
  readonly #refusedAt = new LruMap<string, number>(MOST_REMEMBERED);
  #served = 0;

  constructor(limits: Partial<UnprovenLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
    const { most, mostPerBase, mostPerNetwork, perMinute } = this.#limits;
    this.#places = new SharedBudget({ most, mostPer: { base: mostPerBase, network: mostPerNetwork } });
    this.#arrivals = new RateWindow(perMinute, 60_000);
  }

  get size(): number {
    return this.#places.total;
  }

  /** Counts a request. @returns false if its network has made too many within a minute */
  arrive(network: string): boolean {
    return this.#arrivals.take(network) === 0;
  }

  /**
   * @param signalOf creates the request's signal; called only if there is room, so that a flood of requests costs little
   * @throws the signal's reason
   */
  enter(unproven: Unproven, signalOf: () => AbortSignal): Promise<Entrance> {
    const { sourceBaseId, network } = unproven;
    let giveWay = () => {};
    const place = this.#places.open(
      { base: sourceBaseId, network },
      { giveWay: () => giveWay(), isDoubtful: this.#isRefused(unproven) },
    );
    if (!place.take(1)) return Promise.resolve({ kind: "full" });
    const signal = signalOf();
    if (signal.aborted) {
      place[Symbol.dispose]();
      return Promise.reject(signal.reason);
    }
    return new Promise((resolve, reject) => {
      const abandon = () => {
        this.#leave(entry);
        reject(signal.reason);
      };
      const entry: Entry = {
        ...unproven,
        isServed: false,
        place,
        settle: (entrance) => {
          signal.removeEventListener("abort", abandon);
          resolve(entrance);
        },
      };
      giveWay = () => this.#dismiss(entry, "full");
      signal.addEventListener("abort", abandon, { once: true });
      this.#ofBases.set(sourceBaseId, this.#entriesOf(sourceBaseId).add(entry));
      this.#serve(sourceBaseId);
    });
  }

  /** Dismisses the requests that wait with this key, because the source has accepted or refused it. */
  decided(sourceBaseId: string, keyHash: string): void {
    for (const entry of this.#entriesOf(sourceBaseId)) {
      if (entry.keyHash === keyHash && !entry.isServed) this.#dismiss(entry, "decided");
    }
  }

  #entriesOf(sourceBaseId: string): Set<Entry> {
    return this.#ofBases.get(sourceBaseId) ?? new Set();
  }

  #serve(sourceBaseId: string): void {
    for (let next = this.#next(sourceBaseId); next; next = this.#next(sourceBaseId)) {
      const entry = next;
      entry.isServed = true;
      entry.place.keep();
      const turn = ++this.#served;
      for (const network of networksAround(entry.network))
        this.#servedAs.set(nameOf(sourceBaseId, network), turn);
      const leave = (isRefused = false) => {
        if (isRefused) this.#refusedAt.set(nameOf(sourceBaseId, entry.network), performance.now());
        this.#leave(entry);
      };
      entry.settle({ kind: "served", leave });
    }
  }

  #next(sourceBaseId: string): Entry | undefined {
    const entries = this.#entriesOf(sourceBaseId);
    const served = [...entries].filter((entry) => entry.isServed);
    if (served.length >= this.#limits.servedPerBase) return undefined;
    let next: { entry: Entry; order: number[] } | undefined;
    for (const entry of entries) {
      const isAlone = served.every(
        ({ keyHash, network }) => keyHash !== entry.keyHash && network !== entry.network,
      );
      if (entry.isServed || !isAlone) continue;
      const order = this.#order(entry);
      if (!next || isBefore(order, next.order)) next = { entry, order };
    }
    return next?.entry;
  }

  /** The smaller number at the first difference goes first (U3). */
  #order(entry: Entry): number[] {
    const turns = networksAround(entry.network).map(
      (network) => this.#servedAs.get(nameOf(entry.sourceBaseId, network)) ?? 0,
    );
    return [this.#isRefused(entry) ? 1 : 0, ...turns.reverse()];
  }

  #isRefused({ sourceBaseId, network }: Unproven): boolean {
    const at = this.#refusedAt.get(nameOf(sourceBaseId, network)) ?? -Infinity;
    return performance.now() - at < REFUSED_MS;
  }

  #dismiss(entry: Entry, kind: "decided" | "full"): void {
    if (!this.#delete(entry)) return;
    entry.settle({ kind });
  }

  #leave(entry: Entry): void {
    if (this.#delete(entry)) this.#serve(entry.sourceBaseId);
  }

  #delete(entry: Entry): boolean {
    entry.place[Symbol.dispose]();
    const entries = this.#entriesOf(entry.sourceBaseId);
    const isDeleted = entries.delete(entry);
    if (entries.size === 0) this.#ofBases.delete(entry.sourceBaseId);
    return isDeleted;
  }
}

function nameOf(sourceBaseId: string, network: string): string {
  return `${sourceBaseId} ${network}`;
}

function isBefore(one: number[], other: number[]): boolean {
  for (let at = 0; at < one.length && at < other.length; at++)
    if (one[at] !== other[at]) return one[at]! < other[at]!;
  return false;
}
