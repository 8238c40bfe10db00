/** The frame of the documentation: contents to the left, the page, its headings to the right. */
import type { ComponentChildren } from "preact";
import type { DocGroup, DocHeading } from "./types";

/** With so few headings, a page needs no list of them. */
const FEW_HEADINGS = 2;
/** Deeper headings are not listed. */
const DEEPEST = 3;

export function DocsFrame(props: {
  groups: DocGroup[];
  /** The page's path. */
  current: string;
  headings?: DocHeading[];
  children: ComponentChildren;
}) {
  const { groups, current, children } = props;
  const headings = (props.headings ?? []).filter(({ level }) => level <= DEEPEST);
  const hasHeadings = headings.length > FEW_HEADINGS;
  return (
    <div class="docs">
      {/* The contents are there twice: a script would be needed to open them by the width of the window. */}
      <details class="docs-menu">
        <summary>All pages</summary>
        <Contents groups={groups} current={current} />
      </details>
      <nav class="docs-contents" aria-label="All pages">
        <Contents groups={groups} current={current} />
      </nav>
      <main id="main" class="docs-main" tabIndex={-1}>
        {children}
      </main>
      {hasHeadings ? (
        <aside class="docs-headings">
          <nav aria-label="On this page">
            <p class="docs-headings-title">On this page</p>
            <ul>
              {headings.map(({ level, text, anchor }) => (
                <li key={anchor} class={`level-${level}`}>
                  <a href={`#${anchor}`}>{text}</a>
                </li>
              ))}
            </ul>
          </nav>
        </aside>
      ) : null}
    </div>
  );
}

function Contents({ groups, current }: { groups: DocGroup[]; current: string }) {
  return (
    <ul class="docs-groups">
      {groups.map(({ title, entries }) => (
        <li key={title}>
          <span class="docs-group-title">{title}</span>
          <ul>
            {entries.map((entry) => (
              <li key={entry.href}>
                <a href={entry.href} aria-current={entry.href === current ? "page" : undefined}>
                  {entry.title}
                </a>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}
