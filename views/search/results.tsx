/** What a search has found: as the options of the palette, and as a page for browsers without a script. */
import { Card, Link, PageHead, useMay } from "../components";
import { Icon } from "../components/icon";
import { counted } from "../format";

const searchKinds = {
  base: "Bases",
  action: "Actions",
  page: "Go to",
  table: "Tables",
  column: "Columns",
  setting: "Settings",
  docs: "Docs",
} as const;
export type SearchKind = keyof typeof searchKinds;

export interface SearchItem {
  kind: SearchKind;
  text: string;
  /** What it belongs to. */
  about?: string;
  /** See `Rankable`. */
  aliases?: string;
  context?: string;
  href: string;
}

export interface SearchGroup {
  kind: SearchKind;
  /** The best first. */
  items: SearchItem[];
  /** There are more than these. */
  hasMore: boolean;
}

interface Results {
  query: string;
  groups: SearchGroup[];
}

/** The palette's list. Its script moves through the options, whose ids it knows. */
export function SearchOptions({ query, groups }: Results) {
  let index = 0;
  const all = `/search?${new URLSearchParams({ q: query })}`;
  return (
    <>
      {groups.map(({ kind, items }) => (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms, and this is a group of options
        <div key={kind} role="group" aria-labelledby={`palette-${kind}`}>
          <div id={`palette-${kind}`} class="palette-kind">
            {searchKinds[kind]}
          </div>
          {items.map((item) => (
            <Option key={`${item.href} ${item.text}`} index={index++} {...item} />
          ))}
        </div>
      ))}
      {query !== "" && groups.some(({ hasMore }) => hasMore) ? (
        <Option index={index} kind="page" text={`All results for “${query}”`} href={all} />
      ) : null}
    </>
  );
}

const icons = {
  base: "bases",
  action: "action",
  page: "arrow",
  table: "table",
  column: "column",
  setting: "settings",
  docs: "help",
} as const;

function Option({ index, kind, text, about, href }: SearchItem & { index: number }) {
  if (!useMay()("GET", href)) return null;
  return (
    <a
      id={`palette-option-${index}`}
      class="palette-option"
      role="option"
      aria-selected="false"
      tabIndex={-1}
      href={href}
    >
      <Icon name={icons[kind]} />
      <bdi class="palette-text">{text}</bdi> {about ? <bdi class="palette-about">{about}</bdi> : null}
    </a>
  );
}

export function SearchPage({ query, groups }: Results) {
  const total = groups.reduce((sum, { items }) => sum + items.length, 0);
  return (
    <>
      <PageHead title="Search" />
      <search>
        <form method="get" action="/search" class="find">
          <input
            type="search"
            name="q"
            value={query}
            aria-label="Search bases, tables, columns, settings and docs"
            placeholder="Bases, tables, columns, settings, docs"
            maxLength={200}
            autocomplete="off"
            autofocus={query === ""}
          />
          <button type="submit" class="button">
            Search
          </button>
        </form>
      </search>
      {query === "" ? null : (
        <p class="muted" role="status">
          {total === 0
            ? `Nothing matches “${query}”. Try fewer or shorter words.`
            : `${counted(total, "result")} for “${query}”`}
        </p>
      )}
      {groups.map(({ kind, items, hasMore }) => (
        <Card key={kind} id={`found-${kind}`} title={searchKinds[kind]}>
          <ul class="found">
            {items.map(({ text, about, href }) => (
              <li key={`${href} ${text}`}>
                <Link href={href}>
                  <bdi>{text}</bdi>
                </Link>
                {about ? <bdi class="muted small">{about}</bdi> : null}
              </li>
            ))}
          </ul>
          {hasMore ? <p class="muted small">There are more. Add a word to see fewer.</p> : null}
        </Card>
      ))}
    </>
  );
}
