/**
 * What a worker remembers of a table's records: a 64-bit fingerprint each, and the pass that last saw it.
 *
 * An open-addressing table in typed arrays: a million records take about 50 MB, where a Map of strings takes four
 * times that. Ids are kept as 64-bit hashes. Should two ids ever hash alike they take turns in one slot, never
 * match, and so are compared in SQL each time: slower, not wrong.
 */

/** Slots filled before the table doubles. */
const MAX_LOAD = 0.7;
const FIRST_CAPACITY = 1024;
/** Words of 32 bits per slot: id (2), fingerprint (2), mark (1). */
const WORDS = 5;

/** Fingerprint of a record that must be compared in SQL whatever it is. */
const UNKNOWN = 0n;

/** Marks: an empty slot's, that of a record known but seen by no pass, and from then on the passes' numbers. */
const EMPTY = 0;
const NEVER_SEEN = 1;

export class Fingerprints {
  #slots = new Uint32Array(FIRST_CAPACITY * WORDS);
  #capacity = FIRST_CAPACITY;
  #size = 0;
  /** The pass that is running; marks of earlier ones are smaller. */
  #scan = NEVER_SEEN + 1;
  #seen = 0;

  /** Records known. */
  get size(): number {
    return this.#size;
  }

  /** Records seen in this pass. */
  get seen(): number {
    return this.#seen;
  }

  /** Starts a pass: nothing is seen yet. */
  beginScan(): void {
    this.#scan++;
    this.#seen = 0;
  }

  /** Marks a record as seen. True when its fingerprint is the one that is known. */
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

  /** Is the fingerprint the one that is known? Marks nothing. */
  isKnown(id: string, fingerprint: bigint): boolean {
    return fingerprint !== UNKNOWN && this.get(id) === fingerprint;
  }

  /** The fingerprint that is known of the record; 0 for none. */
  get(id: string): bigint {
    const [high, low] = split(Bun.hash.wyhash(id));
    const at = this.#find(high, low);
    const slots = this.#slots;
    words[0] = slots[at + 3]!;
    words[1] = slots[at + 2]!;
    return hashes[0]!;
  }

  /** Remembers what a record looks like in the replica now. */
  learn(id: string, fingerprint: bigint): void {
    const at = this.#slotOf(id);
    this.#slots.set(split(fingerprint), at + 2);
  }

  /**
   * The replica's row of this record was written by somebody else: it is to be compared in SQL when next seen, and
   * missed when it is not.
   */
  expect(id: string): void {
    this.learn(id, UNKNOWN);
  }

  /** Whatever is known of the records, their rows may be others: each is to be compared in SQL when next seen. */
  expectAll(): void {
    for (let at = 0; at < this.#slots.length; at += WORDS) this.#slots.fill(0, at + 2, at + 4);
  }

  /** The pass that is running. */
  get scan(): number {
    return this.#scan;
  }

  /** The last pass that saw this record, or undefined where none did. */
  scanOf(id: string): number | undefined {
    const [high, low] = split(Bun.hash.wyhash(id));
    const mark = this.#slots[this.#find(high, low) + 4]!;
    return mark > NEVER_SEEN ? mark : undefined;
  }

  hasSeen(id: string): boolean {
    return this.scanOf(id) === this.#scan;
  }

  /** Drops every record that this pass has not seen. */
  forgetUnseen(): void {
    const old = this.#slots;
    this.#allocate(this.#capacity);
    for (let at = 0; at < old.length; at += WORDS) {
      if (old[at + 4] === this.#scan) this.#insert(old, at);
    }
  }

  /** Where `id` is, or is put: a new one is there with no fingerprint, seen by no pass. */
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

/** One hash, and its words: the low one first on every machine that Bun runs on. Shifting it takes twice as long. */
const hashes = new BigUint64Array(1);
const words = new Uint32Array(hashes.buffer);

/** The high and the low 32 bits of a 64-bit hash. */
function split(hash: bigint): [high: number, low: number] {
  hashes[0] = hash;
  return [words[1]!, words[0]!];
}
