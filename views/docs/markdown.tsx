/**
 * Renders Markdown's tokens as elements. Preact escapes every text and attribute, and HTML in Markdown is not rendered.
 */
import type { Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { CodeBlock } from "./code-block";
import { decodeEntities, plainText } from "./text";
import type { DocPage } from "./types";

type Context = Pick<DocPage, "anchors" | "links">;

export function Markdown({ tokens, page }: { tokens: Token[]; page: Context }) {
  return <>{blocks(tokens, page)}</>;
}

function blocks(tokens: Token[], page: Context): ComponentChildren[] {
  return tokens.map((token) => block(token, page));
}

function block(token: Token, page: Context): ComponentChildren {
  switch (token.type) {
    case "heading":
      return <Heading token={token as Tokens.Heading} page={page} />;
    case "paragraph":
      return <p>{inlines(token.tokens, page)}</p>;
    // An item of a list without blank lines.
    case "text":
      return token.tokens ? inlines(token.tokens, page) : decodeEntities(token.text);
    case "code":
      return <CodeBlock code={token.text} language={token.lang?.split(/\s/)[0] ?? ""} />;
    case "list":
      return <List token={token as Tokens.List} page={page} />;
    case "table":
      return <DocTable token={token as Tokens.Table} page={page} />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [], page)}</blockquote>;
    case "hr":
      return <hr />;
    default:
      return null;
  }
}

function Heading({ token, page }: { token: Tokens.Heading; page: Context }) {
  const Level = `h${Math.min(6, token.depth)}` as "h2";
  const anchor = page.anchors.get(token);
  return (
    <Level id={anchor}>
      <a class="anchor" href={`#${anchor}`}>
        {inlines(
          // A link cannot contain another.
          token.tokens.flatMap((part) => (part.type === "link" ? (part.tokens ?? []) : [part])),
          page,
        )}
      </a>
    </Level>
  );
}

function List({ token, page }: { token: Tokens.List; page: Context }) {
  const items = token.items.map((item, index) => <li key={index}>{blocks(item.tokens, page)}</li>);
  if (!token.ordered) return <ul>{items}</ul>;
  return <ol start={token.start === 1 || token.start === "" ? undefined : token.start}>{items}</ol>;
}

function DocTable({ token, page }: { token: Tokens.Table; page: Context }) {
  return (
    // A wide table scrolls, so the keyboard must reach it.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region takes the focus
    <section class="docs-table" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, index) => (
              <th key={index} scope="col" class={cell.align === "right" ? "number" : undefined}>
                {inlines(cell.tokens, page)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td
                  key={column}
                  class={cell.align === "right" ? "number" : undefined}
                  // Shown on a narrow screen, where each row is a list.
                  data-label={plainText(token.header[column]?.tokens)}
                >
                  {inlines(cell.tokens, page)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function inlines(tokens: Token[] | undefined, page: Context): ComponentChildren[] {
  return (tokens ?? []).map((token) => inline(token, page));
}

function inline(token: Token, page: Context): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inlines(token.tokens, page)}</strong>;
    case "em":
      return <em>{inlines(token.tokens, page)}</em>;
    case "del":
      return <del>{inlines(token.tokens, page)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return <DocLink token={token as Tokens.Link} page={page} />;
    case "image":
      return <img class="docs-image" src={page.links.get(token.href)} alt={decodeEntities(token.text)} />;
    case "html":
      return /^<br\s*\/?>$/.test(token.text) ? <br /> : null;
    case "text":
      return token.tokens ? inlines(token.tokens, page) : decodeEntities(token.text);
    case "escape":
      return token.text;
    default:
      return null;
  }
}

/** A link to a file that is not served is shown as text. */
function DocLink({ token, page }: { token: Tokens.Link; page: Context }) {
  const href = page.links.get(token.href);
  const children = inlines(token.tokens, page);
  if (href === undefined) return <span>{children}</span>;
  return /^https?:/.test(href) ? (
    <a href={href} rel="noopener">
      {children}
    </a>
  ) : (
    <a href={href}>{children}</a>
  );
}
