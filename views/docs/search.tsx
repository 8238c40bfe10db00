/** The matches of a search in the documentation. */
import { counted } from "../format";
import { SearchForm } from "../site/frame";
import { DocsFrame } from "./frame";
import { termPattern } from "./text";
import type { DocGroup, DocMatch } from "./types";

interface DocsSearchProps {
  query: string;
  /** The words of the query, in lower case. */
  terms: string[];
  matches: DocMatch[];
  groups: DocGroup[];
}

export function DocsSearch({ query, terms, matches, groups }: DocsSearchProps) {
  return (
    <DocsFrame groups={groups} current="/docs/search">
      <h1>Search</h1>
      <SearchForm query={query} autofocus={terms.length === 0} />
      {terms.length === 0 ? null : (
        <p class="muted" role="status">
          {matches.length === 0
            ? `Nothing matches “${query}”. Try fewer or shorter words.`
            : counted(matches.length, "result")}
        </p>
      )}
      <ol class="docs-matches">
        {matches.map(({ href, title, section, excerpt }) => (
          <li key={href}>
            <a href={href}>
              <Marked text={section ?? title} terms={terms} />
            </a>
            {section === undefined ? null : <span class="docs-match-page">{title}</span>}
            <p>
              <Marked text={excerpt} terms={terms} />
            </p>
          </li>
        ))}
      </ol>
    </DocsFrame>
  );
}

/** Marks the words that were searched for. */
function Marked({ text, terms }: { text: string; terms: string[] }) {
  if (terms.length === 0) return <>{text}</>;
  const parts = text.split(termPattern(terms));
  return <>{parts.map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : part))}</>;
}
