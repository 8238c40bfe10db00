/**
 * Derives SQL names for tables and columns from their names in the source.
 *
 * I1. Within one table (or one schema) names are unique, 1 to 63 bytes long, and valid in Postgres when quoted.
 * I2. An assigned name changes only when its own source name changes, or the name that people have chosen for it: the
 *     names, the number and the order of the other entries have no influence.
 * I3. If names are pinned, an assigned name changes only with the name that people have chosen for it.
 */
import { BasetideError } from "../errors";

/** Longest identifier in bytes that Postgres keeps (NAMEDATALEN - 1); it silently truncates longer ones. */
export const MAX_NAME_BYTES = 63;

/** UTF-16 units of a name that are read: four times the source's longest, and many times what is kept. */
const MAX_READ = 1000;

/** Names of Basetide's own relations in the schema. */
const RESERVED_TABLES = ["_sync_meta", "__sync_meta__", "_sync_issues", "_sync_history"];

/** Tables of Postgres's own come first on every search path: another table with such a name would never be found. */
const CATALOG_NAME = /^pg_/;

/** Columns that every table has, and Postgres's system columns (`oid` is no longer one since version 12). */
const RESERVED_COLUMNS = ["id", "created_time", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

/**
 * Removed without a separator: apostrophes, variation selectors, joiners and other format characters, enclosing marks.
 */
const VANISHING = /['\u2019]|\p{Cf}|\p{Variation_Selector}|[\u20dd-\u20e0]|[\u20e2-\u20e4]/gu;

/** Emoji that count as letters (`ℹ`); all others are symbols and separate words anyway. */
const LETTER_EMOJI = /(?![#*0-9])\p{Extended_Pictographic}/gu;

/** A letter or digit and the letters, digits and combining marks that follow it. */
const WORDS = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;

/** The position in a word where `inventoryCount` splits. Only letters that have a lower-case form begin a word. */
const CASE_CHANGE = /(?<=\p{Ll}\p{M}*)(?=\p{Changes_When_Lowercased})/gu;

const graphemes = new Intl.Segmenter("und", { granularity: "grapheme" });

/** Quotes an identifier. All names in SQL text pass through here. */
export function quoteIdent(name: string): string {
  if (name === "") throw new BasetideError("internal", "An SQL identifier cannot be empty.");
  if (name.includes("\0")) throw new BasetideError("internal", "An SQL identifier cannot contain NUL.");
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * `Product Inventory` → `product_inventory`: words split at spaces, punctuation, symbols and lower-to-upper case
 * changes, in lower case, NFC; apostrophes disappear. May return "" (a name of emoji alone). Only the beginning of a
 * very long name is used.
 */
export function snakeCase(sourceName: string): string {
  const bare = sourceName
    .slice(0, MAX_READ)
    .normalize("NFC")
    .replace(VANISHING, "")
    .replace(LETTER_EMOJI, " ");
  const words = bare.match(WORDS) ?? [];
  return words
    .map((word) => word.replace(CASE_CHANGE, "_"))
    .join("_")
    .toLowerCase()
    .normalize("NFC");
}

/** A name that was assigned before. */
interface KnownName {
  name: string;
  /** The entry's name in the source now. */
  sourceName: string;
  /** The source name that `name` was derived from, if that is another one: the name was pinned. */
  namedFor?: string | undefined;
  /** People have chosen `name`. */
  isOwnName?: true | undefined;
}

/**
 * Assigns a SQL name to every entry, by id.
 *
 * An entry that has a name and was not renamed keeps it; a change of case or punctuation that leaves the words as they
 * are is no renaming. All other entries take their snake-case name in the order of their ids, with `_2`, `_3`… if
 * another entry has it already. So a renamed entry never takes a name from one that remembers it; but a name that its
 * holder gives up in the same call is free, and two entries that swap their source names swap their SQL names. The
 * caller must therefore be able to carry out cyclic renames.
 *
 * A name that people have chosen comes before all names that follow the source, but never takes a pinned one.
 *
 * @param options.remembered by id: the names that were assigned before
 */
export function assignNames(
  entries: readonly { id: string; name: string }[],
  options: {
    remembered?: ReadonlyMap<string, KnownName> | undefined;
    kind: "table" | "column";
    /** Names that are taken and that no entry can get. */
    reserved?: readonly string[];
    /** Names that people have chosen, by id. */
    own?: ReadonlyMap<string, string> | undefined;
    /** Remembered names stay, whatever the source's names become. */
    isPinned?: boolean | undefined;
  },
): Map<string, string> {
  const { remembered, own, isPinned = false } = options;
  const reserved = options.kind === "table" ? RESERVED_TABLES : RESERVED_COLUMNS;
  const taken = new Set([...reserved, ...(options.reserved ?? []).map(folded)]);
  const given = new Map<string, string>();
  const give = (id: string, name: string) => {
    given.set(id, name);
    taken.add(folded(name));
  };

  const byId = [...entries].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  const keep = (stays: (known: KnownName, chosen: string | undefined, sourceName: string) => boolean) => {
    for (const { id, name } of byId) {
      const known = remembered?.get(id);
      if (!known || given.has(id) || taken.has(folded(known.name))) continue;
      if (stays(known, own?.get(id), name)) give(id, known.name);
    }
  };
  if (own) keep((known, chosen) => known.name === chosen);
  if (isPinned) keep((known, chosen) => chosen === undefined && !known.isOwnName);
  for (const { id } of byId) {
    const chosen = own?.get(id);
    if (chosen !== undefined && !given.has(id)) give(id, firstFree(chosen, taken));
  }
  keep(
    ({ namedFor, sourceName, isOwnName }, _, name) => !isOwnName && isSameName(namedFor ?? sourceName, name),
  );
  const fallback = options.kind === "table" ? "table" : "field";
  for (const { id, name } of byId) {
    if (given.has(id)) continue;
    const wanted = snakeCase(name) || fallback;
    const isTaken = reserved.includes(wanted) || (options.kind === "table" && CATALOG_NAME.test(wanted));
    give(id, firstFree(isTaken ? `${wanted}_` : wanted, taken));
  }
  return new Map(entries.map(({ id }) => [id, given.get(id)!]));
}

/** What must be remembered with an assigned name: whether people have chosen it, or what it was derived from. */
export function originOf(
  name: string,
  sourceName: string,
  known: KnownName | undefined,
  chosen: string | undefined,
): Pick<KnownName, "namedFor" | "isOwnName"> {
  if (chosen !== undefined) return { isOwnName: true };
  if (known?.name !== name || known.isOwnName) return {};
  const namedFor = known.namedFor ?? known.sourceName;
  return isSameName(namedFor, sourceName) ? {} : { namedFor };
}

/**
 * Returns why people cannot choose this name; undefined if they can. Names that a query would have to quote are
 * refused, and so are those that Basetide gives to its own relations and columns.
 *
 * @param words those that Postgres reserves
 */
export function refusalOfName(
  name: string,
  kind: "table" | "column",
  words: ReadonlySet<string>,
): string | undefined {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES)
    return `is longer than ${MAX_NAME_BYTES} bytes, the most that Postgres keeps`;
  if (kind === "table" ? RESERVED_TABLES.includes(name) : RESERVED_COLUMNS.includes(name))
    return "is a name of Basetide or Postgres";
  if (kind === "table" && CATALOG_NAME.test(name)) return "begins like the tables of Postgres";
  if (snakeCase(name) !== name || !/^\p{L}/u.test(name))
    return "is not snake_case: use lower-case letters, digits and single underscores, and begin with a letter";
  if (words.has(name)) return "is a reserved word of Postgres";
  return undefined;
}

/**
 * Returns a free name that ends with `suffix`, by id, for each entry: its stem is cut before the suffix is, and a number
 * follows if the name is taken. An entry that has a name for the same stem keeps it.
 */
export function assignSuffixed(
  entries: readonly { id: string; stem: string }[],
  options: {
    suffix: string;
    /** Names of other entries. */
    taken: Iterable<string>;
    /** By id. */
    remembered: ReadonlyMap<string, { name: string; stem: string }>;
  },
): Map<string, string> {
  const taken = new Set(Array.from(options.taken, folded));
  const given = new Map<string, string>();
  const give = (id: string, name: string) => {
    given.set(id, name);
    taken.add(folded(name));
  };
  for (const { id, stem } of entries) {
    const known = options.remembered.get(id);
    if (known?.stem === stem && !taken.has(folded(known.name))) give(id, known.name);
  }
  const byId = entries.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  for (const { id, stem } of byId) {
    if (!given.has(id)) give(id, firstFree(stem, taken, options.suffix));
  }
  return given;
}

function isSameName(before: string, now: string): boolean {
  return before === now || snakeCase(before) === snakeCase(now);
}

/** @param end in ASCII: of each name, before its number */
function firstFree(wanted: string, taken: ReadonlySet<string>, end = ""): string {
  let suffix = end;
  const first = cutToBytes(wanted, MAX_NAME_BYTES - end.length);
  let name = first + end;
  // Cutting is slow, and hundreds may share a name: cut again only when the number gets longer.
  for (let nth = 2, stem = first; taken.has(folded(name)); nth++) {
    const next = `${end}_${nth}`;
    if (next.length !== suffix.length) stem = cutToBytes(wanted, MAX_NAME_BYTES - next.length);
    suffix = next;
    name = stem + suffix;
  }
  return name;
}

/** Quoted names that differ only in these ways are two to Postgres but look the same to people. */
function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Cuts `name` between two user-perceived characters; within one only if that character alone is too long. */
function cutToBytes(name: string, maxBytes: number): string {
  if (Buffer.byteLength(name) <= maxBytes) return name;
  const whole = leading(
    Array.from(graphemes.segment(name), ({ segment }) => segment),
    maxBytes,
  );
  return (whole || leading([...name], maxBytes)).replace(/_+$/, "");
}

/** Returns the leading parts that fit, joined. */
function leading(parts: string[], maxBytes: number): string {
  let end = 0;
  for (let bytes = 0; end < parts.length; end++) {
    bytes += Buffer.byteLength(parts[end]!);
    if (bytes > maxBytes) break;
  }
  return parts.slice(0, end).join("");
}
