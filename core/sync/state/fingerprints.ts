/**
 * A worker's memory of a table's records: a 40-bit fingerprint of each, and the page and the scan that last saw it.
 *
 * An open-addressing hash table in typed arrays: a slot takes 14 bytes, and at least 89 % of the slots are used, so a
 * record takes at most 16 bytes. (A Map of strings takes ten times that.) An empty table takes nothing.
 *
 * A page of a list that has the same digest as in an earlier scan, and none of whose records has changed here since,
 * is seen as a whole (`ScannedPages`). That has the same result as seeing each of its records.
 *
 * Ids are stored as 56-bit hashes. If two ids have the same hash, they overwrite each other's slot, never match, and so
 * are compared in SQL each time: slower, but correct. The deletion of one of them would not be noticed by a sweep: with
 * half a million records, that concerns one deletion in 10^11. A changed record has its old fingerprint once in 10^12
 * changes; the next comparison in SQL finds it.
 */

import { ScannedPages } from "./scanned-pages";

/** The load at which the table grows, and its load afterwards: growing by a fifteenth leaves few slots unused. */
const MAX_LOAD = 0.95;
const GROWN_LOAD = 0.89;
/** Words of 32 bits per slot: the low bits of the id, 24 more and the fingerprint's highest 8, its low 32 bits. */
const WORDS = 3;
const ID_PART = 0xffff_ff00;
const PRINT_PART = 0xff;

/** The bits of a fingerprint that are stored. */
export const FINGERPRINT_BITS = (1n << 40n) - 1n;

/** The mark of a record that no scan has seen. Other marks are pages. */
const NEVER_SEEN = 0;

/** What a scan compares of a page; `RecordPage` has more. */
interface ListedPage {
  readonly size: number;
  /** Equal for pages with the same records; undefined if that cannot be told without looking at them. */
  readonly digest: number | undefined;
  id(index: number): string;
}

/** For fingerprints that depend on the records only. */
const TIMELESS = { now: 0, validUntil: () => Infinity };

export class Fingerprints {
  #slots = new Uint32Array(0);
  /** The last page that had the record of each slot. */
  #marks = new Uint16Array(0);
  readonly #pages = new ScannedPages();
  /** The page of records that this scan has seen on their own. */
  #loose = NEVER_SEEN;
  #capacity = 0;
  #size = 0;
  #scan = 1;
  #seen = 0;
  /** Times of the last two scans (performance.now()). */
  #scannedAt = performance.now();
  #scannedBefore = this.#scannedAt;
  #holds = 0;
  #evictions = 0;

  /** Number of known records. */
  get size(): number {
    return this.#size;
  }

  /** Number of records seen in this scan. */
  get seen(): number {
    return this.#seen;
  }

  /** Bytes of memory that the table occupies. */
  get bytes(): number {
    return this.#slots.byteLength + this.#marks.byteLength + this.#pages.bytes;
  }

  /**
   * Starts a scan: no record is seen yet.
   *
   * @param isPart `scanOf` must know the earlier ones, too: at most 65,535 of them
   */
  beginScan(isPart = false): void {
    if (this.#pages.isSparse && !isPart) this.#renumber(this.#pages.renumber());
    this.#scan++;
    this.#seen = 0;
    this.#loose = NEVER_SEEN;
    this.#scannedBefore = this.#scannedAt;
    this.#scannedAt = performance.now();
  }

  /** Marks a record as seen. Returns true when its fingerprint equals the known one. */
  see(id: string, fingerprint: bigint): boolean {
    const at = this.#slotOf(id);
    this.#loose ||= this.#newMark();
    this.#markSeen(at, this.#loose);
    return this.#isEqual(at, fingerprint);
  }

  /**
   * Marks the records of a page as seen.
   *
   * @param position of the page in the table's list; absent for other pages
   * @param time when the fingerprints are taken, and until when all of them stay as they are, although the digest does
   * @returns the indices of records whose fingerprints do not equal the known ones
   */
  seePage(
    page: ListedPage,
    fingerprintOf: (index: number) => bigint,
    position?: number,
    time: { now: number; validUntil: () => number } = TIMELESS,
  ): number[] {
    const { digest } = page;
    const isListed = digest !== undefined && position !== undefined;
    const repeated = isListed ? this.#pages.repeat(position, digest, this.#scan, time.now) : undefined;
    if (repeated !== undefined) {
      this.#seen += repeated;
      return [];
    }
    const { size } = page;
    const mark = this.#newMark();
    const differing: number[] = [];
    let marked = 0;
    for (let index = 0; index < size; index++) {
      const at = this.#slotOf(page.id(index));
      if (this.#markSeen(at, mark)) marked++;
      if (!this.#isEqual(at, fingerprintOf(index))) differing.push(index);
    }
    const isWhole = differing.length === 0 && marked === size;
    if (isListed && isWhole) this.#pages.list(mark, position, digest, size, time.validUntil());
    return differing;
  }

  /** Returns whether `seePage` need not look at the records of a page with this digest, as far as is known now. */
  knowsPage(position: number, digest: number, now: number): boolean {
    return this.#pages.isIntact(position, digest, now);
  }

  /** Returns whether the fingerprint equals the known one; marks nothing. */
  isKnown(id: string, fingerprint: bigint): boolean {
    const at = this.#find(id);
    return at !== undefined && this.#isEqual(at, fingerprint);
  }

  /** Returns the FINGERPRINT_BITS of the record's known fingerprint; 0 if there is none. */
  get(id: string): bigint {
    const at = this.#find(id);
    if (at === undefined) return 0n;
    words[0] = this.#slots[at * WORDS + 2]!;
    words[1] = this.#slots[at * WORDS + 1]! & PRINT_PART;
    return hashes[0]!;
  }

  /** Stores the fingerprint of the record as it is in the replica now. */
  learn(id: string, fingerprint: bigint): void {
    this.#store(this.#slotOf(id), fingerprint);
  }

  /**
   * Marks a record whose row another process wrote: it is compared in SQL when next seen, and counts as missing when
   * it is not seen.
   */
  expect(id: string): void {
    this.#store(this.#slotOf(id), 0n);
  }

  /** Drops all fingerprints, because the rows may have changed: each record is compared in SQL when next seen. */
  expectAll(): void {
    const slots = this.#slots;
    for (let at = 0; at < slots.length; at += WORDS) {
      slots[at + 1]! &= ID_PART;
      slots[at + 2] = 0;
    }
    this.#pages.changeAll();
  }

  /** The current scan. */
  get scan(): number {
    return this.#scan;
  }

  /** Returns the last scan that saw this record; undefined if there was none, or if it is forgotten. */
  scanOf(id: string): number | undefined {
    const at = this.#find(id);
    return at === undefined ? undefined : this.#pages.scanOf(this.#marks[at]!) || undefined;
  }

  hasSeen(id: string): boolean {
    return this.scanOf(id) === this.#scan;
  }

  /** Forgets every record that this scan has not seen. */
  forgetUnseen(): void {
    if (this.#seen === this.#size) return;
    this.#pages.changeUnseen(this.#scan);
    this.#rehash(this.#seen, this.#scan);
    this.#size = this.#seen;
  }

  /** Keeps the fingerprints from being evicted until the handle is disposed of, as during a sweep. */
  hold(): Disposable {
    this.#holds++;
    return { [Symbol.dispose]: () => void this.#holds-- };
  }

  get isHeld(): boolean {
    return this.#holds > 0;
  }

  /** Time between scans, ms: between the last two, or since the last one if that is longer. */
  restMs(nowMs: number): number {
    return Math.max(this.#scannedAt - this.#scannedBefore, nowMs - this.#scannedAt);
  }

  /** Number of evictions so far. */
  get evictions(): number {
    return this.#evictions;
  }

  /** Forgets all records, and frees their memory. */
  evict(): void {
    this.#evictions++;
    this.#size = 0;
    this.#seen = 0;
    this.#loose = NEVER_SEEN;
    this.#pages.clear();
    this.#allocate(0);
  }

  /** Returns the ids and fingerprints of all records, in 12 bytes each, for `Fingerprints.unpack`. */
  pack(): Uint8Array {
    const packed = new Uint32Array(this.#size * WORDS);
    let end = 0;
    for (let at = 0; at < this.#slots.length; at += WORDS) {
      if (this.#slots[at] === 0) continue;
      packed.set(this.#slots.subarray(at, at + WORDS), end);
      end += WORDS;
    }
    return new Uint8Array(packed.buffer);
  }

  /** Returns the records that were packed: no scan has seen them. Null if the bytes are not those of `pack`. */
  static unpack(bytes: Uint8Array): Fingerprints | null {
    if (bytes.length % (WORDS * 4) !== 0) return null;
    const packed = new Uint32Array(Uint8Array.from(bytes).buffer);
    const size = packed.length / WORDS;
    const fingerprints = new Fingerprints();
    // It rarely gets many more records.
    fingerprints.#allocate(size, MAX_LOAD);
    for (let at = 0; at < packed.length; at += WORDS) {
      const [low, high] = [packed[at]!, packed[at + 1]!];
      if (low === 0 || fingerprints.#slots[fingerprints.#probe(low, high) * WORDS] !== 0) return null;
      fingerprints.#insert(low, high, packed[at + 2]!, NEVER_SEEN);
    }
    fingerprints.#size = size;
    return fingerprints;
  }

  /** Returns the mark of records that are seen from now on. */
  #newMark(): number {
    if (this.#pages.isFull) this.#renumber(this.#pages.merge(this.#scan));
    return this.#pages.add(this.#scan);
  }

  /** Returns false if this scan has seen the record before: it stays with its page. */
  #markSeen(at: number, mark: number): boolean {
    const before = this.#marks[at]!;
    if (this.#pages.scanOf(before) === this.#scan) return false;
    this.#pages.change(before);
    this.#marks[at] = mark;
    this.#seen++;
    return true;
  }

  #renumber(numbers: Uint16Array): void {
    const marks = this.#marks;
    for (let at = 0; at < marks.length; at++) marks[at] = numbers[marks[at]!]!;
    this.#loose = NEVER_SEEN;
  }

  #isEqual(at: number, fingerprint: bigint): boolean {
    hashes[0] = fingerprint;
    const low = words[0]!;
    const high = words[1]! & PRINT_PART;
    // Zero means unknown: such a record is always compared.
    if (low === 0 && high === 0) return false;
    const slots = this.#slots;
    return slots[at * WORDS + 2] === low && (slots[at * WORDS + 1]! & PRINT_PART) === high;
  }

  #store(at: number, fingerprint: bigint): void {
    const slots = this.#slots;
    hashes[0] = fingerprint;
    slots[at * WORDS + 1] = (slots[at * WORDS + 1]! & ID_PART) | (words[1]! & PRINT_PART);
    slots[at * WORDS + 2] = words[0]!;
    this.#pages.change(this.#marks[at]!);
  }

  /** Returns the slot of `id`; undefined if it is not known. */
  #find(id: string): number | undefined {
    if (this.#size === 0) return undefined;
    hashes[0] = Bun.hash.wyhash(id);
    const at = this.#probe(words[0]! || 1, words[1]!);
    return this.#slots[at * WORDS] === 0 ? undefined : at;
  }

  /** Returns the slot of `id`. Adds an unknown id, without a fingerprint and seen by no scan. */
  #slotOf(id: string): number {
    hashes[0] = Bun.hash.wyhash(id);
    // Zero marks an empty slot.
    const low = words[0]! || 1;
    const high = words[1]!;
    if (this.#size > 0) {
      const at = this.#probe(low, high);
      if (this.#slots[at * WORDS] !== 0) return at;
    }
    if (this.#size + 1 > this.#capacity * MAX_LOAD) this.#rehash(this.#size + 1);
    this.#size++;
    return this.#insert(low, high & ID_PART, 0, NEVER_SEEN);
  }

  /** Returns the slot that has this id, or the free one where it belongs. */
  #probe(low: number, high: number): number {
    const slots = this.#slots;
    const capacity = this.#capacity;
    const rest = high & ID_PART;
    // Scales the hash to the capacity: no power of two is needed.
    let at = Math.floor((low * capacity) / 2 ** 32);
    for (;;) {
      const found = slots[at * WORDS]!;
      if (found === 0 || (found === low && (slots[at * WORDS + 1]! & ID_PART) === rest)) return at;
      if (++at === capacity) at = 0;
    }
  }

  #insert(low: number, high: number, print: number, mark: number): number {
    const at = this.#probe(low, high);
    const slots = this.#slots;
    slots[at * WORDS] = low;
    slots[at * WORDS + 1] = high;
    slots[at * WORDS + 2] = print;
    this.#marks[at] = mark;
    return at;
  }

  /** Makes room for `size` records, and forgets those that the scan `only` has not seen, if it is given. */
  #rehash(size: number, only?: number): void {
    const [slots, marks, capacity] = [this.#slots, this.#marks, this.#capacity];
    this.#allocate(size);
    for (let at = 0; at < capacity; at++) {
      const low = slots[at * WORDS]!;
      if (low === 0 || (only !== undefined && this.#pages.scanOf(marks[at]!) !== only)) continue;
      this.#insert(low, slots[at * WORDS + 1]!, slots[at * WORDS + 2]!, marks[at]!);
    }
  }

  #allocate(size: number, load = GROWN_LOAD): void {
    // With a slot that stays free, every search ends.
    this.#capacity = size === 0 ? 0 : Math.max(size + 1, Math.floor(size / load));
    this.#slots = new Uint32Array(this.#capacity * WORDS);
    this.#marks = new Uint16Array(this.#capacity);
  }
}

/** One hash and its words, the low word first on every machine that Bun runs on. Shifting takes twice as long. */
const hashes = new BigUint64Array(1);
const words = new Uint32Array(hashes.buffer);
