/**
 * Random numbers and ids. A seed gives the same sequence on every machine; without a seed, ids are unguessable.
 */

/** The alphabet of Airtable's ids, and their length after the three-letter prefix. */
const ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH = 14;

type IdPrefix = "app" | "tbl" | "fld" | "viw" | "rec" | "usr" | "com" | "att" | "sel" | "itr" | "ach";

/** Whether `text` looks like an id of this kind. Checks only the prefix and the alphabet. */
export function isSandboxId(prefix: IdPrefix, text: unknown): text is string {
  return (
    typeof text === "string" && text.length > 3 && text.startsWith(prefix) && /^[0-9A-Za-z]+$/.test(text)
  );
}

/** A sequence of numbers that depends only on the seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number | string = crypto.getRandomValues(new Uint32Array(1))[0]!) {
    this.#state = typeof seed === "number" ? seed >>> 0 : hashText(seed);
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** A whole number in [min, max]. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<T>(items: readonly T[]): T {
    return items[this.int(0, items.length - 1)]!;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  id(prefix: IdPrefix): string {
    let id: string = prefix;
    for (let i = 0; i < ID_LENGTH; i++) id += ID_ALPHABET[this.int(0, ID_ALPHABET.length - 1)];
    return id;
  }
}

/** FNV-1a of the text's UTF-16 units. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
