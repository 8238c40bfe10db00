/** The permits of a user of the source, which the bases of this process use in the order in which they found none. */
import type { BaseQueue } from "./base-queue";
import { type Demand, PermitSet } from "./permit-set";

/** Of a user's requests, sync leaves the rest to clients. */
const SYNC_PART = 0.8;

export class UserQueue extends PermitSet {
  readonly #waiting = new Set<BaseQueue>();
  /** The base whose turn it is: for one request. */
  #turn: BaseQueue | undefined;
  #cancelTurn = () => {};

  override get isIdle(): boolean {
    return this.#waiting.size === 0 && super.isIdle;
  }

  protected demand(): Demand {
    const { size } = this;
    const most = this.of.isProxy ? size : size * SYNC_PART;
    return { kind: this.of.isProxy ? "client" : "sync", waiting: this.#waiting.size, most };
  }

  /** Uses a permit; if none is ready, calls `retry.work` in its turn. @param restMs as in `PermitSet.use` */
  tryUse(retry: BaseQueue, restMs: number): boolean {
    const isTurn = this.#turn === retry || this.#waiting.size === 0;
    if (isTurn && this.readyAt() <= this.now) {
      this.#turn = undefined;
      this.use(restMs);
      return true;
    }
    this.#waiting.add(retry);
    this.usedAt = this.now;
    this.#wait();
    return false;
  }

  override work(): void {
    for (const first of this.#waiting) {
      if (this.readyAt() > this.now) break;
      this.#waiting.delete(first);
      this.#turn = first;
      first.work();
      this.#turn = undefined;
    }
    this.#wait();
  }

  #wait(): void {
    this.#cancelTurn();
    const at = this.readyAt();
    if (this.#waiting.size > 0 && at < Infinity) this.#cancelTurn = this.of.clock.at(at, () => this.work());
    this.settle();
  }
}
