/** Links to the pages of one subject; on a narrow screen they scroll. */

interface Tab {
  href: string;
  text: string;
  /** A short number or mark behind the text, such as the number of issues. */
  mark?: string | undefined;
}

/** @param props.current the `href` of the current page */
export function Tabs(props: {
  label: string;
  current: string;
  tabs: readonly Tab[];
  /** Default `tabs`; the others are for a choice within a page. */
  look?: "tabs" | "segments" | "periods" | "client-tabs";
}) {
  const { label, current, tabs, look = "tabs" } = props;
  return (
    <nav class={look} aria-label={label}>
      {tabs.map(({ href, text, mark }) => (
        <a key={href} href={href} aria-current={href === current ? "page" : undefined}>
          {text}
          {mark ? <span class="tab-mark">{mark}</span> : null}
        </a>
      ))}
    </nav>
  );
}
