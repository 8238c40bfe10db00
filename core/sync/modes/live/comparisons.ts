/** Remembers which tables were compared with the source, and which the feed has reported since. */

export class Comparisons {
  /** Up to when each table has been compared (ms on the source's clock), by its id. */
  readonly untilMs = new Map<string, number>();
  /** When each table was compared, and reported: positions in the order of all events. */
  #compared = new Map<string, number>();
  #reported = new Map<string, number>();
  #moment = 0;
  #isReportedNext = false;

  told(tableId: string): void {
    this.#reported.set(tableId, ++this.#moment);
  }

  compared(tableId: string, untilMs: number): void {
    this.#compared.set(tableId, ++this.#moment);
    this.untilMs.set(tableId, untilMs);
  }

  /**
   * Returns the table to compare next: alternately the one that was reported last and the one whose comparison is the
   * oldest, so that a table that always changes does not keep the others from being compared.
   */
  next(tableIds: readonly string[]): string | undefined {
    const comparedAt = (id: string) => this.#compared.get(id) ?? 0;
    const reportedAt = (id: string) => this.#reported.get(id) ?? 0;
    const [oldest] = tableIds.toSorted((a, b) => comparedAt(a) - comparedAt(b));
    const [reported] = tableIds
      .filter((id) => reportedAt(id) > comparedAt(id))
      .toSorted((a, b) => reportedAt(b) - reportedAt(a));
    this.#isReportedNext = !this.#isReportedNext;
    return this.#isReportedNext ? (reported ?? oldest) : oldest;
  }
}
