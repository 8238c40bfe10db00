/** Links to the pages of one subject; on a narrow screen they scroll. */

interface Tab {
  href: string;
  text: string;
  /** A short number or mark behind the text, such as the number of issues. */
  mark?: string | undefined;
}

/** @param props.current the `href` of the current page */
export function Tabs({ label, current, tabs }: { label: string; current: string; tabs: readonly Tab[] }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ href, text, mark }) => (
        <a key={href} href={href} aria-current={href === current ? "page" : undefined}>
          {text}
          {mark ? <span class="tab-mark">{mark}</span> : null}
        </a>
      ))}
    </nav>
  );
}
