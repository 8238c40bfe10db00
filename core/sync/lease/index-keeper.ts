/**
 * Keeps the indexes of a base's setting while a worker holds its lease: creates them in the background, and again
 * after a schema change removed one.
 */
import type { Logger } from "../../log";
import { applyIndexes, indexedColumns, type Replica } from "../../replica";
import type { IndexSetting } from "../host";

/** Pause before a failed attempt is repeated; it doubles each time. */
const RETRY_MS = 5000;
const MAX_RETRY_MS = 300_000;

export class IndexKeeper {
  #done: IndexSetting[] | undefined;
  #work: Promise<void> | undefined;
  #tryAt = 0;
  #retryMs = RETRY_MS;

  /**
   * @param onNames called with the setting under the current names, if they have changed
   */
  constructor(
    private readonly replica: Replica,
    private readonly epoch: number,
    private readonly log: Logger,
    private readonly onNames: (before: IndexSetting[], now: IndexSetting[]) => Promise<void>,
  ) {}

  /** True while an index is being created. */
  get isWorking(): boolean {
    return this.#work !== undefined;
  }

  /** Returns whether nothing is left to do for this setting. */
  isApplied(wanted: IndexSetting[]): boolean {
    return !this.#work && this.#done !== undefined && Bun.deepEquals(this.#done, wanted);
  }

  /** Called repeatedly with the current setting. Returns at once and never fails. */
  apply(wanted: IndexSetting[]): void {
    if (this.#work || this.isApplied(wanted) || performance.now() < this.#tryAt) return;
    this.#work = this.#applyNow(wanted)
      .catch((error: unknown) => {
        this.log.debug({ error }, "applying indexes failed; retrying later");
        this.#wait();
      })
      .finally(() => {
        this.#work = undefined;
      });
  }

  /** Called when the schema of the tables has changed. */
  changed(): void {
    this.#done = undefined;
    this.#tryAt = 0;
  }

  async #applyNow(wanted: IndexSetting[]): Promise<void> {
    // A change that is made from here on starts another run.
    this.#done = wanted;
    const isDone = await applyIndexes(this.replica, this.epoch, wanted);
    if (wanted.length > 0) {
      const columns = await indexedColumns(this.replica, wanted);
      const named = wanted.map((one) => ({
        ...one,
        ...columns.find(({ tableId, fieldId }) => tableId === one.tableId && fieldId === one.fieldId),
      }));
      if (!Bun.deepEquals(named, wanted)) await this.onNames(wanted, named);
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
