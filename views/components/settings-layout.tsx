/**
 * A page of settings: an index of its sections at the left, the sections next to it. Within it, a form of class `rows`
 * has each field's text at the left and its control at the right.
 */
import type { ComponentChildren } from "preact";

/** @param props.sections id of each section's card, and its title */
export function SettingsLayout(props: {
  sections: readonly (readonly [id: string, title: string])[];
  children: ComponentChildren;
}) {
  return (
    <div class="settings">
      <nav class="section-index" aria-label="On this page">
        {props.sections.map(([id, title]) => (
          <a key={id} href={`#${id}`}>
            {title}
          </a>
        ))}
      </nav>
      <div class="stack">{props.children}</div>
    </div>
  );
}
