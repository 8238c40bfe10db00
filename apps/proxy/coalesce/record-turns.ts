/** Lets the writes of one record go one after the other, in order of arrival. */
export class RecordTurns {
  /** When the last turn that was taken ends, by record. */
  readonly #last = new Map<string, Promise<void>>();

  /** Resolves when all earlier turns of the record have ended; at once without a record. */
  async take(record: string | undefined): Promise<Disposable> {
    if (record === undefined) return { [Symbol.dispose]() {} };
    const before = this.#last.get(record);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(record, promise);
    await before;
    return {
      [Symbol.dispose]: () => {
        if (this.#last.get(record) === promise) this.#last.delete(record);
        resolve();
      },
    };
  }
}
