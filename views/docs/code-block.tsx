/** A program in the documentation, with its words colored, and a button to copy it. */
import { highlight } from "./highlight";

const NAMES: Record<string, string> = {
  sh: "Shell",
  sql: "SQL",
  js: "JavaScript",
  json: "JSON",
  python: "Python",
  yaml: "YAML",
  mermaid: "Diagram",
};

export function CodeBlock({ code, language }: { code: string; language: string }) {
  const name = NAMES[language] ?? "Text";
  return (
    <figure class="docs-code">
      <figcaption>
        {name}
        {/* It copies what is in the same figure: ids would make long pages longer. */}
        <button type="button" class="docs-copy needs-script" data-copy="">
          Copy<span class="visually-hidden"> this program</span>
        </button>
      </figcaption>
      {/* A long line scrolls, so the keyboard must reach it. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region takes the focus */}
      <pre tabIndex={0}>
        <code>
          {highlight(code, language).map((part, index) =>
            typeof part === "string" ? (
              part
            ) : (
              <span key={index} class={`tok-${part.kind}`}>
                {part.text}
              </span>
            ),
          )}
        </code>
      </pre>
    </figure>
  );
}
