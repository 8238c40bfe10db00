/** What the views of the documentation show. */
import type { Token } from "marked";

/** A page, made from a Markdown file of the repository. */
export interface DocPage {
  /** Path below `/docs/`. */
  slug: string;
  title: string;
  /** In the table of contents. */
  name: string;
  /** What a reader finds there. */
  summary: string;
  /** Without the title. */
  tokens: Token[];
  headings: DocHeading[];
  /** By the heading's token. */
  anchors: Map<Token, string>;
  /** The page as Markdown, with links that lead to pages as Markdown. */
  markdown: string;
  /** The page's link → where it leads on this site; undefined if the file is not served. */
  links: Map<string, string>;
}

export interface DocHeading {
  level: number;
  text: string;
  anchor: string;
}

/** A group of the table of contents. */
export interface DocGroup {
  title: string;
  entries: DocEntry[];
}

export interface DocEntry {
  href: string;
  title: string;
  summary: string;
}

/** A match of a search. */
export interface DocMatch {
  href: string;
  /** The title of the page, and of the section if it is not the first. */
  title: string;
  section: string | undefined;
  /** A part of the text around the first match. */
  excerpt: string;
}
