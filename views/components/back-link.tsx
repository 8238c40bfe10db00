/** A line that leads back to the list from which a page was opened. */
import type { ComponentChildren } from "preact";

export function BackLink({ href, children }: { href: string; children: ComponentChildren }) {
  return (
    <p>
      <a class="back small" href={href}>
        <span aria-hidden="true">← </span>
        {children}
      </a>
    </p>
  );
}
