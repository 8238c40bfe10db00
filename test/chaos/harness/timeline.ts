/**
 * When faults hit what, and how long it took until that was well again.
 *
 * A fault that goes on, or comes, while something heals puts the clock of that healing to its own end: nothing is expected
 * of what is broken, and nothing is forgiven longer than that.
 */
import type { Supervised } from "./supervised";
import type { WatchedBase } from "./watched-base";

const POLL_MS = 50;
/** Longer than anything may take to heal, ms. */
const KEPT_MS = 600_000;

/** A fault as it befell the service. Times are performance.now(). */
export interface Hit {
  from: number;
  /** Infinity as long as it goes on. */
  to: number;
  /** What must not be expected to work meanwhile. */
  bases: readonly WatchedBase[];
  processes: readonly Supervised[];
  /** Writes are shown when they are answered, all the same. */
  sparesWrites: boolean;
  /** Everything it hit has to work again after so long, ms. */
  boundMs: number;
}

export interface Healed {
  /** From the last end of a fault that was in its way. */
  ms: number;
  /** Another fault was in its way. */
  isDisturbed: boolean;
}

export interface Healing {
  /** For the error: "live syncs". */
  what: string;
  own: Hit;
  /** Where the clock starts unless another fault is in the way. */
  since: number;
  isInTheWay: (hit: Hit) => boolean;
  /** When it first was well after `since`; undefined: not yet. */
  healedAt: (since: number) => Promise<number | undefined> | number | undefined;
}

export class Timeline {
  #hits: Hit[] = [];

  add(hit: Hit): Hit {
    this.#hits = [...this.#hits.filter(({ to }) => to > performance.now() - KEPT_MS), hit];
    return hit;
  }

  /** Was anything of the kind going on then, or for `afterMs` before? */
  wasHit(from: number, afterMs: number, isInTheWay: (hit: Hit) => boolean): boolean {
    return this.#hits.some((hit) => isInTheWay(hit) && hit.to + afterMs > from);
  }

  /** @throws Error when it is not well within its bound after the last fault that was in its way */
  async healed({ what, own, since, isInTheWay, healedAt }: Healing): Promise<Healed> {
    let [from, isDisturbed] = [since, false];
    let why = "";
    for (;;) {
      const others = this.#hits.filter((hit) => hit !== own && isInTheWay(hit));
      const during = others.filter((hit) => hit.from <= from && hit.to > from);
      const ends = Math.max(from, ...during.map(({ to }) => to));
      if (ends > from) {
        isDisturbed = true;
        if (Number.isFinite(ends)) {
          from = ends;
          continue;
        }
      } else {
        const next = others.filter((hit) => hit.from > from).toSorted((a, b) => a.from - b.from)[0];
        const at = await Promise.resolve(healedAt(from)).catch((error: unknown) => {
          why = `; last: ${String(error)}`;
          return undefined;
        });
        if (at !== undefined && at <= (next?.from ?? Number.POSITIVE_INFINITY))
          return { ms: at - from, isDisturbed };
        if (next && Number.isFinite(next.to)) {
          [from, isDisturbed] = [next.to, true];
          continue;
        }
        const late = others.filter(({ to }) => to >= since);
        const boundMs = Math.max(own.boundMs, ...late.map((hit) => hit.boundMs));
        if (!next && performance.now() > from + boundMs)
          throw new Error(`waited ${boundMs} ms until ${what}${why}`);
      }
      await Bun.sleep(POLL_MS);
    }
  }
}
