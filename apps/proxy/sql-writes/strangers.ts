/**
 * Limits what clients that have not authenticated take from the endpoint: connections, and lookups of bases.
 *
 * Once a network has named a few bases that do not exist, only bases that have authenticated before are looked up for it:
 * the server of many bases may have one that is gone.
 */
import { RateWindow, SharedBudget } from "../../../core/http";
import { LruMap } from "../../../core/lru-map";
import { MINUTE_MS } from "../../../core/time-units";

/** Connections before they have authenticated. One server may open all those of a base at once. */
const MOST_EARLY = { most: 500, mostPer: { network: 200 } };
/** Refusals in a minute: unknown bases of a network, and wrong secrets of a network for one base. */
const MOST_REFUSED = 20;
const MOST_KNOWN = 100_000;

export class Strangers {
  readonly #early = new SharedBudget<never>(MOST_EARLY);
  readonly #unknown = new RateWindow(MOST_REFUSED, MINUTE_MS);
  readonly #wrong = new RateWindow(MOST_REFUSED, MINUTE_MS);
  readonly #known = new LruMap<string, true>(MOST_KNOWN);

  /**
   * Returns a place until the client has authenticated; undefined if there is none.
   *
   * @param giveWay called when a client of another network gets the place
   */
  enter(network: string, giveWay: () => void): Disposable | undefined {
    const place = this.#early.open({ network }, { giveWay });
    return place.take(1) ? place : undefined;
  }

  mayLookUp(network: string, baseId: string): boolean {
    if (this.#wrong.waitMs(`${network} ${baseId}`) > 0) return false;
    return this.#known.get(baseId) === true || this.#unknown.waitMs(network) === 0;
  }

  countUnknown(network: string): void {
    this.#unknown.take(network);
  }

  countWrong(network: string, baseId: string): void {
    this.#wrong.take(`${network} ${baseId}`);
  }

  authenticated(baseId: string): void {
    this.#known.set(baseId, true);
  }
}
