/** Orders what a search has found: the closer a name is to the query, the earlier. */
import { normalized } from "../../../core/control/bases";

/** What a search compares: a name, and texts that terms may also be in. */
export interface Rankable {
  text: string;
  /** Other words for the same thing, of which each term must begin one. */
  aliases?: string;
  /** Where it belongs, such as the table and the base of a column: not enough on its own. */
  context?: string;
}

/** From the best to the worst. */
const SCORES = { equal: 100, prefix: 80, words: 60, inside: 40, partly: 20 };
/** The most that the other words of the name take off, one each: never enough to change the kind of match. */
const MOST_OFF = 15;

/**
 * Returns the items that have every term in one of their texts, and one in their name or aliases; the best first, equal
 * ones in their given order. Without terms, all in their order.
 *
 * @param options.byWord a term counts only at the beginning of a word: “ord” is not meant to find “password”
 */
export function ranked<Item extends Rankable>(
  items: readonly Item[],
  terms: string[],
  options: { byWord?: boolean } = {},
): (Item & Scored)[] {
  return items
    .map((item) => ({ ...item, score: scoreOf(item, terms, options) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score);
}

interface Scored {
  score: number;
}

/** Zero if it does not match. */
export function scoreOf(
  { text, aliases = "", context = "" }: Rankable,
  terms: string[],
  { byWord = false }: { byWord?: boolean } = {},
): number {
  if (terms.length === 0) return SCORES.partly;
  const name = normalized(text);
  const others = normalized(aliases);
  const around = normalized(context);
  const isNamed = (term: string) => (byWord ? beginsWord(name, term) : name.includes(term));
  const isOwn = (term: string) => isNamed(term) || beginsWord(others, term);
  if (!terms.some(isOwn) || !terms.every((term) => isOwn(term) || around.includes(term))) return 0;
  const query = terms.join(" ");
  if (name === query) return SCORES.equal;
  const off = Math.min(MOST_OFF, Math.max(0, name.split(" ").length - terms.length));
  if (name.startsWith(query)) return SCORES.prefix - off;
  if (!terms.every(isNamed)) return SCORES.partly - off;
  return (terms.every((term) => beginsWord(name, term)) ? SCORES.words : SCORES.inside) - off;
}

function beginsWord(words: string, term: string): boolean {
  return words.startsWith(term) || words.includes(` ${term}`);
}
