/**
 * Identifiers of programming languages, made of SQL names.
 *
 * I1. Within one call names are unique, also for a file system that ignores case.
 * I2. A name depends only on its own SQL name, unless several SQL names become the same identifier.
 */

/** Converts a SQL name to an identifier; what remains may be empty. */
type Speller = (sqlName: string) => string;

interface Rules {
  spell: Speller;
  /** For names of which nothing remains. */
  fallback: string;
  /** Names that get an underscore at the end. */
  reserved?: ReadonlySet<string>;
  /** What an identifier occupies: two identifiers may have no key in common. By default itself, in any case. */
  keysOf?: (identifier: string) => string[];
  /** Keys that are occupied from the start. */
  occupied?: Iterable<string>;
}

/** Gives each entry an identifier, by id; the entries that are named first keep the plain one. */
export function assignIdentifiers(
  entries: readonly { id: string; name: string }[],
  {
    spell,
    fallback,
    reserved = new Set(),
    keysOf = (identifier) => [identifier.toLowerCase()],
    occupied = [],
  }: Rules,
): Map<string, string> {
  const taken = new Set(occupied);
  const given = new Map<string, string>();
  for (const { id, name } of [...entries].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const spelled = spell(name) || fallback;
    const wanted = reserved.has(spelled) ? `${spelled}_` : spelled;
    let free = wanted;
    for (let nth = 2; keysOf(free).some((key) => taken.has(key)); nth++) free = `${wanted}_${nth}`;
    for (const key of keysOf(free)) taken.add(key);
    given.set(id, free);
  }
  return given;
}

/** The beginning of a name, as much as fits into this many bytes. */
export function shortened(name: string, bytes: number): string {
  let text = name;
  while (Buffer.byteLength(text) > bytes) text = [...text].slice(0, -1).join("");
  return text;
}

/** `project_tasks` → `ProjectTasks`, for types of TypeScript and classes of Python; `2024` → `T2024`. */
export const unicodeTypeName: Speller = (sqlName) => started("T", pascalCase(unicodeWord(sqlName)));

/** The same with ASCII letters only: `größe` → `Grosse`. Empty if none remain. */
export const asciiTypeName: Speller = (sqlName) => started("T", pascalCase(asciiWord(sqlName)));

/** `project_tasks` → `projectTasks`, for variables of TypeScript. */
export const variableName: Speller = (sqlName) => {
  const name = pascalCase(unicodeWord(sqlName));
  const [first = ""] = name;
  return started("t", first.toLowerCase() + name.slice(first.length));
};

/** `2024_budget` → `f_2024_budget`, for attributes of Python, which keep the SQL name where they can. */
export const unicodeAttribute: Speller = (sqlName) => started("f_", unicodeWord(sqlName));

/** The same with ASCII letters only, for Prisma. */
export const asciiAttribute: Speller = (sqlName) => started("f_", asciiWord(sqlName));

/** Letters, digits and marks that all compilers know: newer versions of Unicode add some that older ones refuse. */
const KNOWN: readonly [number, number][] = [
  ...([
    [0x20, 0x86f],
    [0x900, 0xc5b],
    [0xc5d, 0xcdb],
    [0xcdd, 0xcf2],
    [0xcf4, 0xecd],
  ] as [number, number][]),
  ...([
    [0xecf, 0x1abf],
    [0x1b00, 0x1c7f],
    [0x1e00, 0x1fff],
    [0x3040, 0x30fa],
  ] as [number, number][]),
  ...([
    [0x30fc, 0x30ff],
    [0x3400, 0x4db5],
    [0x4e00, 0x9fcb],
    [0xac00, 0xd7a3],
  ] as [number, number][]),
];
const PART = /\p{XID_Continue}/u;

/** Python compares identifiers in NFKC. */
function unicodeWord(name: string): string {
  return [...name.normalize("NFKC")].filter(isKnown).join("");
}

function isKnown(char: string): boolean {
  const code = char.codePointAt(0)!;
  return KNOWN.some(([from, to]) => code >= from && code <= to) && PART.test(char);
}

function asciiWord(name: string): string {
  return name
    .replaceAll("ß", "ss")
    .normalize("NFKD")
    .replace(/[^A-Za-z0-9_]/g, "")
    .replace(/^_+|_+$/g, "");
}

function pascalCase(word: string): string {
  return word
    .split("_")
    .map(([first = "", ...rest]) => capital(first) + rest.join(""))
    .join("")
    .normalize("NFKC");
}

/** The capital of a letter may be newer than the letter. */
function capital(letter: string): string {
  const upper = letter.toUpperCase();
  return [...upper].every(isKnown) ? upper : letter;
}

function started(prefix: string, name: string): string {
  return name === "" || /^\p{XID_Start}/u.test(name) ? name : prefix + name;
}
