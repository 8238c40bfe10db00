/** Searches headings and texts of the documentation, by section. */
import type { Token } from "marked";
import { plainText, termPattern } from "../../../views/docs/text";
import type { DocMatch, DocPage } from "../../../views/docs/types";
import { DOCS_PATH, loadDocs } from "./site";

const MAX_MATCHES = 30;
const MAX_TERMS = 8;
const EXCERPT_LENGTH = 200;
/** What a term is worth by its place. In a text, it counts up to so many times. */
const WORTH = { title: 6, heading: 12, text: 1 };
const MOST_IN_TEXT = 4;
/** The factor of a section that has all terms: it comes before all others. */
const WHOLE = 100;

/** A part of a page that a match leads to. */
export interface Section {
  href: string;
  title: string;
  heading: string | undefined;
  text: string;
}

let all: Section[] | undefined;

/** The sections of all pages. */
export function allSections(): Section[] {
  all ??= [...loadDocs().pages.values()].flatMap(sectionsOf);
  return all;
}

/** The sections of a page: the text before the first heading, and that below each one. */
function sectionsOf(page: DocPage): Section[] {
  const start: Section = {
    href: `${DOCS_PATH}/${page.slug}`,
    title: page.name,
    heading: undefined,
    text: "",
  };
  const sections = [start];
  const textOf = (token: Token) => `${plainText([token])}\n`;
  for (const token of page.tokens) {
    const anchor = page.anchors.get(token);
    if (token.type === "heading" && anchor !== undefined) {
      const heading = plainText(token.tokens);
      sections.push({ href: `${start.href}#${anchor}`, title: page.name, heading, text: "" });
    } else sections.at(-1)!.text += textOf(token);
  }
  return sections;
}

/**
 * @returns the sections that have a word of the query, on pages that have all of them; the best first, those with all
 *   words before the others
 */
export function searchDocs(sections: Section[], query: string): DocMatch[] {
  const terms = termsOf(query);
  if (terms.length === 0) return [];
  const patterns = terms.map((term) => termPattern([term]));
  const pages = Map.groupBy(sections, ({ title }) => title);
  const hasAll = (ofPage: Section[]) => {
    const whole = ofPage.map(({ title, heading, text }) => `${title} ${heading} ${text}`).join(" ");
    return patterns.every((pattern) => countOf(pattern, whole) > 0);
  };
  return [...pages.values()]
    .filter(hasAll)
    .flat()
    .map((section) => ({ section, worth: worthOf(section, patterns, terms.join(" ")) }))
    .filter(({ worth }) => worth > 0)
    .sort((a, b) => b.worth - a.worth)
    .slice(0, MAX_MATCHES)
    .map(({ section }) => ({
      href: section.href,
      title: section.title,
      section: section.heading,
      excerpt: excerptOf(section.text, termPattern(terms)),
    }));
}

export function termsOf(query: string): string[] {
  return [...new Set(query.toLowerCase().match(/[\p{L}\p{N}_.]+/gu))].slice(0, MAX_TERMS);
}

/** Zero without any term. */
function worthOf({ title, heading = "", text }: Section, patterns: RegExp[], phrase: string): number {
  const worths = patterns.map((pattern) => {
    const times = Math.min(MOST_IN_TEXT, countOf(pattern, text));
    // A page's title counts for its first section: all others of the page would match as well.
    const titleWorth = countOf(pattern, title) > 0 ? (heading === "" ? WORTH.title * 2 : WORTH.title / 6) : 0;
    return titleWorth + (countOf(pattern, heading) > 0 ? WORTH.heading : 0) + times * WORTH.text;
  });
  const isPhrase = `${heading} ${text}`.toLowerCase().includes(phrase);
  const sum = worths.reduce((total, worth) => total + worth, 0);
  return sum * (worths.includes(0) ? 1 : isPhrase ? WHOLE * 2 : WHOLE);
}

function countOf(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0;
}

function excerptOf(text: string, pattern: RegExp): string {
  const plain = text.replace(/\s+/g, " ").trim();
  const at = Math.max(0, plain.search(pattern));
  const start = at <= EXCERPT_LENGTH / 3 ? 0 : plain.indexOf(" ", at - EXCERPT_LENGTH / 3) + 1;
  const end = start + EXCERPT_LENGTH;
  const cut = end < plain.length ? `${plain.slice(start, end).replace(/\s+\S*$/, "")} …` : plain.slice(start);
  return start > 0 ? `… ${cut}` : cut;
}
