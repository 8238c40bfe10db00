/** The first page of the documentation: where to start, and all pages with what they are about. */
import { SearchForm } from "../site/frame";
import { DocsFrame } from "./frame";
import type { DocGroup } from "./types";

const STARTS: { href: string; title: string; text: string }[] = [
  {
    href: "/docs/quick-start",
    title: "Quick start",
    text: "Run it with a simulated Airtable, or connect a base.",
  },
  {
    href: "/docs/sql",
    title: "Query your data",
    text: "Tables, joins over links, freshness, history, indexes.",
  },
  {
    href: "/docs/proxy",
    title: "Write through the proxy",
    text: "Keep Airtable's API, and see each write in SQL.",
  },
  {
    href: "/docs/api",
    title: "API reference",
    text: "Every call with its fields, errors and a curl example.",
  },
];

export function DocsHome({ groups, path }: { groups: DocGroup[]; path: string }) {
  return (
    <DocsFrame groups={groups} current={path}>
      <h1>Documentation</h1>
      <p class="lead">
        A live, read-only Postgres copy of your Airtable bases, and a proxy that writes through to Airtable.
      </p>
      <SearchForm query="" />
      <ul class="docs-starts">
        {STARTS.map(({ href, title, text }) => (
          <li key={href}>
            <a href={href}>{title}</a>
            <p>{text}</p>
          </li>
        ))}
      </ul>
      {groups.map(({ title, entries }) => (
        <section key={title} class="docs-group">
          <h2>{title}</h2>
          <ul>
            {entries.map((entry) => (
              <li key={entry.href}>
                <a href={entry.href}>{entry.title}</a>
                <span>{entry.summary}</span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p class="muted small">
        For programs that read documentation: <a href="/llms.txt">llms.txt</a>, and every page as Markdown at
        its address with <code>.md</code>.
      </p>
    </DocsFrame>
  );
}
