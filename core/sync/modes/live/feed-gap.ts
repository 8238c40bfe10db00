/**
 * A feed gap: changes from before some moment are missing from the feed, and a scan must find them.
 *
 * The control plane's server defines that moment, which identifies the gap. Whether a scan began after it is decided
 * by this process's performance.now(), which never jumps.
 */
export class FeedGap {
  #open: { since: Date; at: number } | null = null;

  /** By the server's clock. */
  get since(): Date | null {
    return this.#open?.since ?? null;
  }

  /** Sets the gap as the server has it. */
  set(since: Date | null, msAgo = 0): void {
    this.#open = since && { since, at: performance.now() - msAgo };
  }

  /**
   * Extends the gap up to now, at once.
   *
   * @param record records it at the server; returns the start of the recorded gap, if any
   * @throws the error of `record`: a scan is still needed, and the server's record is unchanged
   */
  async grow(record: () => Promise<Date | null>): Promise<void> {
    const grown = { since: this.#open?.since ?? new Date(0), at: performance.now() };
    this.#open = grown;
    grown.since = (await record()) ?? grown.since;
  }

  /**
   * Closes the gap: a scan that began at `sweptFrom` (performance.now()) has found the missing changes.
   *
   * @param record records it at the server, which keeps a gap that was recorded later than the given time
   */
  async close(sweptFrom: number, record: (since: Date | null) => Promise<void>): Promise<void> {
    const closing = this.#open;
    if (closing && closing.at > sweptFrom) return;
    await record(this.since);
    if (this.#open === closing) this.#open = null;
  }
}
