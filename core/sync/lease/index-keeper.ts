/**
 * Keeps the indexes of a base's setting while a worker holds its lease: creates them in the background, and again
 * after a schema change removed one.
 */
import { applyIndexes, indexedColumns, type Replica } from "../../replica";
import type { IndexSetting } from "../host";

export class IndexKeeper {
  #done: IndexSetting[] | undefined;

  /**
   * @param onNames called with the setting under the current names, if they have changed
   */
  constructor(
    private readonly replica: Replica,
    private readonly epoch: number,
    private readonly onNames: (before: IndexSetting[], now: IndexSetting[]) => Promise<void>,
  ) {}

  /** Returns whether nothing is left to do for this setting. */
  isApplied(wanted: IndexSetting[]): boolean {
    return Bun.deepEquals(this.#done, wanted);
  }

  /** To be called when the schema of the tables has changed. */
  changed(): void {
    this.#done = undefined;
  }

  /** Creates and drops indexes, which may take long. @returns whether nothing is left to do */
  async apply(wanted: IndexSetting[]): Promise<boolean> {
    // A change that is made from here on needs another run.
    this.#done = wanted;
    let isDone = false;
    try {
      isDone = await applyIndexes(this.replica, this.epoch, wanted);
      if (wanted.length > 0) {
        const columns = await indexedColumns(this.replica, wanted);
        const named = wanted.map((one) => ({
          ...one,
          ...columns.find(({ tableId, fieldId }) => tableId === one.tableId && fieldId === one.fieldId),
        }));
        if (!Bun.deepEquals(named, wanted)) await this.onNames(wanted, named);
      }
    } finally {
      if (!isDone) this.#done = undefined;
    }
    return isDone;
  }
}
