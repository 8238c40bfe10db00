/** Which tables were compared with the source, and which the feed has told of since. */

export class Comparisons {
  /** Up to when each table has been compared (ms on the source's clock), by its id. */
  readonly untilMs = new Map<string, number>();
  /** When each was compared, and told of: in the order of all that happened. */
  #compared = new Map<string, number>();
  #told = new Map<string, number>();
  #moment = 0;
  #isTurnOfTold = false;

  told(tableId: string): void {
    this.#told.set(tableId, ++this.#moment);
  }

  compared(tableId: string, untilMs: number): void {
    this.#compared.set(tableId, ++this.#moment);
    this.untilMs.set(tableId, untilMs);
  }

  /**
   * The table to compare next: in turn the one that was told of last, and the one that was compared longest ago, so that
   * a table that always changes does not keep the others from being compared.
   */
  next(tableIds: readonly string[]): string | undefined {
    const comparedAt = (id: string) => this.#compared.get(id) ?? 0;
    const reportedAt = (id: string) => this.#told.get(id) ?? 0;
    const [oldest] = tableIds.toSorted((a, b) => comparedAt(a) - comparedAt(b));
    const [told] = tableIds
      .filter((id) => reportedAt(id) > comparedAt(id))
      .toSorted((a, b) => reportedAt(b) - reportedAt(a));
    this.#isTurnOfTold = !this.#isTurnOfTold;
    return this.#isTurnOfTold ? (told ?? oldest) : oldest;
  }
}
