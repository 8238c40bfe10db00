/** A link to a page of another site, which opens in a tab of its own; screen readers say so. */
import type { ComponentChildren } from "preact";

export function NewTabLink(props: { href: string; class?: string; children: ComponentChildren }) {
  return (
    <a href={props.href} class={props.class} target="_blank" rel="noopener noreferrer">
      {props.children}
      <span class="visually-hidden">, in a new tab</span>
    </a>
  );
}
