/** One page of the documentation, and that of a folder of files that it refers to, such as dashboards. */
import { DocsFrame } from "./frame";
import { Markdown } from "./markdown";
import type { DocEntry, DocGroup, DocPage } from "./types";

export function DocView({ page, groups, path }: { page: DocPage; groups: DocGroup[]; path: string }) {
  const entries = groups.flatMap((group) => group.entries);
  const at = entries.findIndex(({ href }) => href === path);
  const group = groups.find((one) => one.entries.some(({ href }) => href === path));
  return (
    <DocsFrame groups={groups} current={path} headings={page.headings}>
      <article class="prose">
        <p class="docs-eyebrow">
          {group?.title} ·{" "}
          <a href={`${path}.md`} class="muted">
            Markdown
          </a>
        </p>
        <h1>{page.title}</h1>
        <Markdown tokens={page.tokens} page={page} />
      </article>
      <nav class="docs-next" aria-label="Next pages">
        <Neighbor entry={entries[at - 1]} direction="Previous" />
        <Neighbor entry={entries[at + 1]} direction="Next" />
      </nav>
    </DocsFrame>
  );
}

function Neighbor({ entry, direction }: { entry: DocEntry | undefined; direction: "Previous" | "Next" }) {
  if (!entry) return <span />;
  return (
    <a href={entry.href} class={direction.toLowerCase()}>
      <span class="muted small">{direction}</span>
      <span>{entry.title}</span>
    </a>
  );
}

export function DocFiles({ folder, names, groups }: { folder: string; names: string[]; groups: DocGroup[] }) {
  return (
    <DocsFrame groups={groups} current="/docs/files">
      <h1>{folder}</h1>
      <ul class="docs-files">
        {names.map((name) => (
          <li key={name}>
            <a href={`/docs/files/${name}`}>{name.slice(folder.length + 1)}</a>
          </li>
        ))}
      </ul>
    </DocsFrame>
  );
}
