/**
 * A worker's memory of a table's records: a 64-bit fingerprint of each, and the scan that last saw it.
 *
 * An open-addressing hash table in typed arrays: a million records take about 50 MB, while a Map of strings takes four
 * times that. Ids are stored as 64-bit hashes. If two ids have the same hash, they overwrite each other's slot, never
 * match, and so are compared in SQL each time: slower, but correct.
 */

/** The load at which the table doubles. */
const MAX_LOAD = 0.7;
const FIRST_CAPACITY = 1024;
/** Words of 32 bits per slot: id (2), fingerprint (2), mark (1). */
const WORDS = 5;

/** Fingerprint of a record that must always be compared in SQL. */
const UNKNOWN = 0n;

/** Marks: of an empty slot, and of a known record that no scan has seen; larger marks are scan numbers. */
const EMPTY = 0;
const NEVER_SEEN = 1;

export class Fingerprints {
  #slots = new Uint32Array(FIRST_CAPACITY * WORDS);
  #capacity = FIRST_CAPACITY;
  #size = 0;
  /** The current scan; marks of earlier ones are smaller. */
  #scan = NEVER_SEEN + 1;
  #seen = 0;

  /** Number of known records. */
  get size(): number {
    return this.#size;
  }

  /** Number of records seen in this scan. */
  get seen(): number {
    return this.#seen;
  }

  /** Starts a scan: no record is seen yet. */
  beginScan(): void {
    this.#scan++;
    this.#seen = 0;
  }

  /** Marks a record as seen. Returns true when its fingerprint equals the known one. */
  see(id: string, fingerprint: bigint): boolean {
    const at = this.#slotOf(id);
    const slots = this.#slots;
    const [high, low] = split(fingerprint);
    if (slots[at + 4] !== this.#scan) {
      slots[at + 4] = this.#scan;
      this.#seen++;
    }
    return fingerprint !== UNKNOWN && slots[at + 2] === high && slots[at + 3] === low;
  }

  /** Returns whether the fingerprint equals the known one; marks nothing. */
  isKnown(id: string, fingerprint: bigint): boolean {
    return fingerprint !== UNKNOWN && this.get(id) === fingerprint;
  }

  /** Returns the known fingerprint of the record; 0 if there is none. */
  get(id: string): bigint {
    const [high, low] = split(Bun.hash.wyhash(id));
    const at = this.#find(high, low);
    const slots = this.#slots;
    words[0] = slots[at + 3]!;
    words[1] = slots[at + 2]!;
    return hashes[0]!;
  }

  /** Stores the fingerprint of the record as it is in the replica now. */
  learn(id: string, fingerprint: bigint): void {
    const at = this.#slotOf(id);
    this.#slots.set(split(fingerprint), at + 2);
  }

  /**
   * Marks a record whose row another process wrote: it is compared in SQL when next seen, and counts as missing when
   * it is not seen.
   */
  expect(id: string): void {
    this.learn(id, UNKNOWN);
  }

  /** Drops all fingerprints, because the rows may have changed: each record is compared in SQL when next seen. */
  expectAll(): void {
    for (let at = 0; at < this.#slots.length; at += WORDS) this.#slots.fill(0, at + 2, at + 4);
  }

  /** The current scan. */
  get scan(): number {
    return this.#scan;
  }

  /** Returns the last scan that saw this record; undefined if there was none. */
  scanOf(id: string): number | undefined {
    const [high, low] = split(Bun.hash.wyhash(id));
    const mark = this.#slots[this.#find(high, low) + 4]!;
    return mark > NEVER_SEEN ? mark : undefined;
  }

  hasSeen(id: string): boolean {
    return this.scanOf(id) === this.#scan;
  }

  /** Forgets every record that this scan has not seen. */
  forgetUnseen(): void {
    const old = this.#slots;
    this.#allocate(this.#capacity);
    for (let at = 0; at < old.length; at += WORDS) {
      if (old[at + 4] === this.#scan) this.#insert(old, at);
    }
  }

  /** Returns the slot of `id`. Adds an unknown id, without a fingerprint and seen by no scan. */
  #slotOf(id: string): number {
    const [high, low] = split(Bun.hash.wyhash(id));
    let at = this.#find(high, low);
    if (this.#slots[at + 4] === EMPTY) {
      if (this.#size + 1 > this.#capacity * MAX_LOAD) {
        const old = this.#slots;
        this.#allocate(this.#capacity * 2);
        for (let from = 0; from < old.length; from += WORDS)
          if (old[from + 4] !== EMPTY) this.#insert(old, from);
        at = this.#find(high, low);
      }
      this.#slots.set([high, low, 0, 0, NEVER_SEEN], at);
      this.#size++;
    }
    return at;
  }

  #find(high: number, low: number): number {
    const mask = this.#capacity - 1;
    const slots = this.#slots;
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const at = slot * WORDS;
      if (slots[at + 4] === EMPTY || (slots[at] === high && slots[at + 1] === low)) return at;
    }
  }

  #allocate(capacity: number): void {
    this.#capacity = capacity;
    this.#slots = new Uint32Array(capacity * WORDS);
    this.#size = 0;
  }

  #insert(from: Uint32Array, at: number): void {
    this.#slots.set(from.subarray(at, at + WORDS), this.#find(from[at]!, from[at + 1]!));
    this.#size++;
  }
}

/** One hash and its words, the low word first on every machine that Bun runs on. Shifting takes twice as long. */
const hashes = new BigUint64Array(1);
const words = new Uint32Array(hashes.buffer);

/** Returns the high and the low 32 bits of a 64-bit hash. */
function split(hash: bigint): [high: number, low: number] {
  hashes[0] = hash;
  return [words[1]!, words[0]!];
}
