/** The permits of a user of the source, which the bases of this process use in the order in which they found none. */
import type { BaseQueue } from "./base-queue";
import type { PermitHolder } from "./permit-holder";
import { type Demand, PermitSet } from "./permit-set";

/** Of a user's requests, sync leaves the rest to clients. */
const SYNC_PART = 0.8;

export class UserQueue {
  readonly permits: PermitSet;
  readonly #waiting = new Set<BaseQueue>();
  readonly #of: PermitHolder;
  /** The base whose turn it is: for one request. */
  #turn: BaseQueue | undefined;
  #cancelAlarm = () => {};

  /** @param size requests that the source allows in a window */
  constructor(of: PermitHolder, key: string, size: number) {
    this.#of = of;
    const demand = (): Demand => ({
      waiting: this.#waiting.size,
      ...(of.isProxy ? { kind: "client", most: size } : { kind: "sync", most: size * SYNC_PART }),
    });
    const set = { key, size, isUser: true };
    this.permits = new PermitSet(
      of,
      set,
      () => 0,
      demand,
      () => this.#serve(),
    );
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0 && this.permits.isIdle;
  }

  /** Uses a permit; if none is ready, calls `retry.work` in its turn. @param restMs as in `PermitSet.use` */
  tryUse(retry: BaseQueue, restMs: number): boolean {
    const isTurn = this.#turn === retry || this.#waiting.size === 0;
    if (isTurn && this.permits.readyAt() <= this.#of.clock.now()) {
      this.#turn = undefined;
      this.permits.use(restMs);
      return true;
    }
    this.#waiting.add(retry);
    this.permits.usedAt = this.#of.clock.now();
    this.#settle();
    return false;
  }

  #serve(): void {
    for (const first of this.#waiting) {
      if (this.permits.readyAt() > this.#of.clock.now()) break;
      this.#waiting.delete(first);
      this.#turn = first;
      first.work();
      this.#turn = undefined;
    }
    this.#settle();
  }

  #settle(): void {
    this.#cancelAlarm();
    const at = this.permits.readyAt();
    if (this.#waiting.size > 0 && at < Infinity)
      this.#cancelAlarm = this.#of.clock.at(at, () => this.#serve());
    this.permits.settle();
  }
}
