/** Lets the writes of one record go one after the other, in order of arrival. */
import { withTimeout } from "../../../core/async";

const NONE: Disposable = { [Symbol.dispose]() {} };

export class RecordTurns {
  /** When the last turn that was taken ends, by record. */
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Resolves when all earlier turns of the record have ended; at once without a record.
   *
   * @returns undefined if they do not end within `ms`: the turn is given up
   */
  async take(record: string | undefined, ms: number): Promise<Disposable | undefined> {
    if (record === undefined) return NONE;
    const before = this.#last.get(record);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(record, promise);
    const end = () => {
      if (this.#last.get(record) === promise) this.#last.delete(record);
      resolve();
    };
    const isTime = before?.then(() => true) ?? true;
    if (isTime === true || (await withTimeout(ms, () => false, isTime))) return { [Symbol.dispose]: end };
    // Later turns still wait for the earlier ones.
    void before!.then(end);
    return undefined;
  }
}
