/**
 * Records when faults hit which parts, and how long the parts took to recover.
 *
 * A fault that continues or begins during a recovery moves the start of that recovery's clock to its own end: nothing
 * is expected of a broken part, and nothing is excused for longer.
 */
import type { Supervised } from "./supervised";
import type { WatchedBase } from "./watched-base";

const POLL_MS = 50;
/** Longer than any recovery may take, ms. */
const KEPT_MS = 600_000;

/** A fault and its targets. Times are performance.now(). */
export interface Hit {
  from: number;
  /** Infinity while it continues. */
  to: number;
  /** What must not be expected to work meanwhile. */
  bases: readonly WatchedBase[];
  processes: readonly Supervised[];
  /** Writes are still visible when they are answered. */
  sparesWrites: boolean;
  /** The time within which everything that it hit must work again, ms. */
  boundMs: number;
}

export interface Healed {
  /** From the end of the last fault that disturbed it. */
  ms: number;
  /** Another fault disturbed it. */
  isDisturbed: boolean;
}

export interface Healing {
  /** For the error: "live syncs". */
  what: string;
  own: Hit;
  /** When the clock starts unless another fault disturbs it. */
  since: number;
  isInTheWay: (hit: Hit) => boolean;
  /** When it first worked after `since`; undefined: not yet. */
  healedAt: (since: number) => Promise<number | undefined> | number | undefined;
}

export class Timeline {
  #hits: Hit[] = [];

  add(hit: Hit): Hit {
    this.#hits = [...this.#hits.filter(({ to }) => to > performance.now() - KEPT_MS), hit];
    return hit;
  }

  /** Returns whether such a fault was active then, or within `afterMs` before. */
  wasHit(from: number, afterMs: number, isInTheWay: (hit: Hit) => boolean): boolean {
    return this.#hits.some((hit) => isInTheWay(hit) && hit.to + afterMs > from);
  }

  /** @throws Error if it has not recovered within its limit after the last fault that disturbed it */
  async healed({ what, own, since, isInTheWay, healedAt }: Healing): Promise<Healed> {
    let [from, isDisturbed] = [since, false];
    let why = "";
    const looked = (since: number) =>
      Promise.resolve(healedAt(since)).catch((error: unknown) => {
        why = `; last: ${String(error)}`;
        return undefined;
      });
    // What a continuing fault has hit is only known at its end: until then, it may be in the way or not.
    let seen: number | undefined;
    for (;;) {
      const others = this.#hits.filter((hit) => hit !== own && isInTheWay(hit));
      const during = others.filter((hit) => hit.from <= from && hit.to > from);
      const ends = Math.max(from, ...during.map(({ to }) => to));
      if (ends > from) {
        isDisturbed = true;
        if (Number.isFinite(ends)) {
          [from, seen] = [ends, undefined];
          continue;
        }
        seen ??= await looked(from);
      } else {
        const next = others.filter((hit) => hit.from > from).toSorted((a, b) => a.from - b.from)[0];
        const at = seen ?? (await looked(from));
        if (at !== undefined && at <= (next?.from ?? Number.POSITIVE_INFINITY))
          return { ms: at - from, isDisturbed };
        if (next && Number.isFinite(next.to)) {
          [from, seen, isDisturbed] = [next.to, undefined, true];
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
