/**
 * Keeps the indexes that a base's setting asks for, while a lease holds the base: made in the background, and again where
 * a change of shape took one away.
 */
import { type IndexSetting, sameIndexes } from "../../control/bases";
import type { Logger } from "../../log";
import { applyIndexes, indexedColumns, type Replica } from "../../replica";

/** Pause before what was in the way is tried again; it doubles. */
const RETRY_MS = 5000;
const MAX_RETRY_MS = 300_000;

export class IndexKeeper {
  #done: IndexSetting[] | undefined;
  #work: Promise<void> | undefined;
  #tryAt = 0;
  #retryMs = RETRY_MS;

  /** @param onNames told of the setting with the names of today, where they have changed */
  constructor(
    private readonly replica: Replica,
    private readonly epoch: number,
    private readonly log: Logger,
    private readonly onNames: (before: IndexSetting[], now: IndexSetting[]) => Promise<void>,
  ) {}

  /** Is an index being made? */
  get isWorking(): boolean {
    return this.#work !== undefined;
  }

  /** To be told over and over. Returns at once, and never fails. */
  apply(wanted: IndexSetting[]): void {
    if (this.#work || (this.#done && sameIndexes(this.#done, wanted)) || performance.now() < this.#tryAt)
      return;
    this.#work = this.#bring(wanted)
      .catch((error: unknown) => {
        this.log.debug({ error }, "indexes not followed yet");
        this.#wait();
      })
      .finally(() => {
        this.#work = undefined;
      });
  }

  /** The shape of the tables has changed. */
  changed(): void {
    this.#done = undefined;
    this.#tryAt = 0;
  }

  async #bring(wanted: IndexSetting[]): Promise<void> {
    // What changes from here on is looked at again.
    this.#done = wanted;
    const isDone = await applyIndexes(this.replica, this.epoch, wanted);
    if (wanted.length > 0) {
      const columns = await indexedColumns(this.replica, wanted);
      const named = wanted.map((one) => ({
        ...one,
        ...columns.find(({ tableId, fieldId }) => tableId === one.tableId && fieldId === one.fieldId),
      }));
      if (!sameIndexes(named, wanted)) await this.onNames(wanted, named);
    }
    if (isDone) this.#retryMs = RETRY_MS;
    else this.#wait();
  }

  #wait(): void {
    this.#done = undefined;
    this.#tryAt = performance.now() + this.#retryMs;
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
  }
}
