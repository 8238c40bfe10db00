/** A text of several lines to copy: a card with a copy button, if a script runs. */
import type { ComponentChildren } from "preact";
import { Card } from "./card";

export function Program(props: {
  id: string;
  title: string;
  /** For screen readers, after "Copy". */
  name: string;
  code: string;
  /** Before the text. */
  children?: ComponentChildren;
}) {
  const { id, title, name, code, children } = props;
  return (
    <Card
      id={id}
      title={title}
      actions={
        <button type="button" class="button quiet small needs-script" data-copy={`${id}-text`}>
          Copy<span class="visually-hidden"> the {name}</span>
        </button>
      }
    >
      {children}
      <CodeText id={id} name={name} code={code} />
    </Card>
  );
}

/** The same within another section: a line with the name and the button, and the text. */
export function ProgramText({ id, name, code }: { id: string; name: string; code: string }) {
  return (
    <div class="code-block">
      <div class="code-head">
        <span class="copy-label">{name}</span>
        <button type="button" class="button quiet small needs-script" data-copy={`${id}-text`}>
          Copy<span class="visually-hidden"> {name}</span>
        </button>
      </div>
      <CodeText id={id} name={name} code={code} />
    </div>
  );
}

/** A long line scrolls, so the keyboard must reach it. */
function CodeText({ id, name, code }: { id: string; name: string; code: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region takes the focus
    <section class="program" tabIndex={0} aria-label={name}>
      <pre>
        <code id={`${id}-text`}>{code}</code>
      </pre>
    </section>
  );
}
