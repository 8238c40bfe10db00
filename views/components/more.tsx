/** The rest of an explanation, on demand: it continues the line before it. */
import type { ComponentChildren } from "preact";

/** Nothing without children. @param props.about for screen readers, after "More" */
export function More({ about, children }: { about: string; children: ComponentChildren }) {
  if (!children) return null;
  return (
    <details class="more">
      <summary>
        More<span class="visually-hidden"> about {about}</span>
      </summary>
      <p class="hint">{children}</p>
    </details>
  );
}
