/**
 * The pages of a table's list as the scans read them: which scan saw each last, and a digest of those whose records
 * are all known. A scan that reads a page with the same digest need not look at its records.
 *
 * A page is *intact* as long as each of its records has the fingerprint that it had in the page, was seen in no other
 * page since, and is still known. `change` ends that.
 *
 * Pages are numbered from 1 in the order in which they were read; 0 is none. A page takes 16 bytes.
 */

/** The count of a page that is not intact. */
const CHANGED = 0xffff;
const MOST_PAGES = 0xffff;
const GROWTH = 1.25;

export class ScannedPages {
  #scans = new Uint32Array(0);
  #digests = new Float64Array(0);
  /** Number of records. */
  #counts = new Uint16Array(0);
  /** Until when a page stays intact (performance.now()); absent while all do for good. */
  #untils: Float64Array | undefined;
  /** The latest intact page at each position of the list. */
  #listed = new Uint16Array(0);
  #positions = 0;
  #used = 0;

  get bytes(): number {
    const { byteLength } = this.#scans;
    const untils = this.#untils?.byteLength ?? 0;
    return byteLength + this.#digests.byteLength + this.#counts.byteLength + this.#listed.byteLength + untils;
  }

  /** True if no page can be added before `renumber` or `merge`. */
  get isFull(): boolean {
    return this.#used === MOST_PAGES;
  }

  /** True if most numbers are those of pages that are no longer listed. */
  get isSparse(): boolean {
    return this.#used > 2 * this.#positions;
  }

  /** The scan that saw this page last; 0 for none. */
  scanOf(page: number): number {
    return this.#scans[page] ?? 0;
  }

  /** Adds a page that this scan has read. It is not intact. */
  add(scan: number): number {
    const page = ++this.#used;
    if (page >= this.#scans.length) this.#grow(page + 1);
    this.#scans[page] = scan;
    this.#counts[page] = CHANGED;
    return page;
  }

  /**
   * Lists an added page: all its records are known, and were seen in this page only.
   *
   * @param until from then on, the page is not intact
   */
  list(page: number, position: number, digest: number, count: number, until = Infinity): void {
    if (count >= CHANGED || position >= MOST_PAGES) return;
    if (position >= this.#listed.length) {
      const listed = this.#listed;
      this.#listed = new Uint16Array(Math.ceil((position + 1) * GROWTH));
      this.#listed.set(listed);
    }
    this.#positions = Math.max(this.#positions, position + 1);
    this.#listed[position] = page;
    this.#digests[page] = digest;
    this.#counts[page] = count;
    if (until !== Infinity) this.#untils ??= new Float64Array(this.#scans.length).fill(Infinity);
    if (this.#untils) this.#untils[page] = until;
  }

  /** Returns whether the page at this position of the list is intact and has this digest. */
  isIntact(position: number, digest: number, now: number): boolean {
    const page = this.#listed[position] ?? 0;
    if (page === 0 || this.#counts[page] === CHANGED || this.#digests[page] !== digest) return false;
    return this.#untils === undefined || now < this.#untils[page]!;
  }

  /**
   * Counts the page at this position as seen by this scan, if it is intact, has this digest, and was not seen yet.
   *
   * @returns the number of its records; undefined if they must be looked at
   */
  repeat(position: number, digest: number, scan: number, now: number): number | undefined {
    if (!this.isIntact(position, digest, now)) return undefined;
    const page = this.#listed[position]!;
    if (this.#scans[page] === scan) return undefined;
    this.#scans[page] = scan;
    return this.#counts[page];
  }

  /** A record of this page has changed. */
  change(page: number): void {
    this.#counts[page] = CHANGED;
  }

  changeAll(): void {
    this.#counts.fill(CHANGED);
  }

  /** Records that this scan has not seen are forgotten. */
  changeUnseen(scan: number): void {
    for (let page = 1; page <= this.#used; page++) if (this.#scans[page] !== scan) this.change(page);
  }

  clear(): void {
    this.#scans = new Uint32Array(0);
    this.#digests = new Float64Array(0);
    this.#counts = new Uint16Array(0);
    this.#untils = undefined;
    this.#listed = new Uint16Array(0);
    this.#positions = 0;
    this.#used = 0;
  }

  /** Forgets all pages but the listed ones that are intact. @returns the new number of each page, 0 for forgotten ones */
  renumber(): Uint16Array {
    const before = {
      scans: this.#scans,
      digests: this.#digests,
      counts: this.#counts,
      untils: this.#untils,
      listed: this.#listed,
    };
    const numbers = new Uint16Array(this.#used + 1);
    const kept = [...before.listed.entries()].filter(
      ([, page]) => page !== 0 && before.counts[page] !== CHANGED,
    );
    this.clear();
    for (const [position, page] of kept) {
      const number = this.add(before.scans[page]!);
      numbers[page] = number;
      this.list(number, position, before.digests[page]!, before.counts[page]!, before.untils?.[page]);
    }
    return numbers;
  }

  /** Forgets which page is which: those that this scan has seen become one. @returns the new number of each page */
  merge(scan: number): Uint16Array {
    const numbers = Uint16Array.from({ length: this.#used + 1 }, (_, page) =>
      page > 0 && this.#scans[page] === scan ? 1 : 0,
    );
    this.clear();
    this.add(scan);
    return numbers;
  }

  #grow(least: number): void {
    const length = Math.ceil(least * GROWTH);
    const [scans, digests, counts, untils] = [this.#scans, this.#digests, this.#counts, this.#untils];
    this.#scans = new Uint32Array(length);
    this.#digests = new Float64Array(length);
    this.#counts = new Uint16Array(length);
    this.#scans.set(scans);
    this.#digests.set(digests);
    this.#counts.set(counts);
    if (!untils) return;
    this.#untils = new Float64Array(length).fill(Infinity);
    this.#untils.set(untils);
  }
}
