/**
 * What is missing from a base's feed: changes of before a moment, which a sweep has to find.
 *
 * The control plane's server says when that was, and knows the gap by it. Whether a sweep began after it goes by this
 * process's performance.now(), which never jumps.
 */
export class FeedGap {
  #open: { since: Date; at: number } | null = null;

  /** By the server's clock. */
  get since(): Date | null {
    return this.#open?.since ?? null;
  }

  /** How long ago it ended, ms; Infinity: nothing is missing. */
  get agoMs(): number {
    return this.#open ? performance.now() - this.#open.at : Number.POSITIVE_INFINITY;
  }

  /** As the server has it. */
  set(since: Date | null, msAgo = 0): void {
    this.#open = since && { since, at: performance.now() - msAgo };
  }

  /**
   * Reaches up to now, at once.
   *
   * @param note tells the server; since when, if it has noted that
   * @throws what `note` does: a sweep is still to come, and the server knows of no more than before
   */
  async grow(note: () => Promise<Date | null>): Promise<void> {
    const grown = { since: this.#open?.since ?? new Date(0), at: performance.now() };
    this.#open = grown;
    grown.since = (await note()) ?? grown.since;
  }

  /**
   * A sweep that began at `sweptFrom` (performance.now()) has found what was missing before.
   *
   * @param note tells the server, which keeps what was noted later than it is told
   */
  async close(sweptFrom: number, note: (since: Date | null) => Promise<void>): Promise<void> {
    const closing = this.#open;
    if (closing && closing.at > sweptFrom) return;
    await note(this.since);
    if (this.#open === closing) this.#open = null;
  }
}
