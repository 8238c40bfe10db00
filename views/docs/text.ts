/** Texts and anchors of Markdown's tokens. */
import type { Token } from "marked";

const ENTITIES: Record<string, string> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": "\u00a0",
};

/** The lexer leaves entities as they are, and preact escapes them again. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] ?? entity);
}

/** The text that a reader sees, without its form. */
export function plainText(tokens: Token[] | undefined): string {
  return (tokens ?? []).map(textOfToken).join("");
}

function textOfToken(token: Token): string {
  switch (token.type) {
    case "table": {
      const rows = [token.header, ...token.rows] as { tokens: Token[] }[][];
      return rows.map((row) => row.map((cell) => plainText(cell.tokens)).join(" · ")).join("\n");
    }
    case "list":
      return (token.items as { tokens: Token[] }[]).map((item) => plainText(item.tokens)).join("\n");
    case "html":
      return "";
    case "br":
    case "space":
      return "\n";
    case "code":
    case "codespan":
      return token.text;
    default: {
      const inner = "tokens" in token ? token.tokens : undefined;
      if (inner && inner.length > 0) return plainText(inner);
      return "text" in token && typeof token.text === "string" ? decodeEntities(token.text) : "";
    }
  }
}

/** Creates anchors of headings as GitHub does, each once. */
export function anchorMaker(): (heading: string) => string {
  const given = new Set<string>();
  return (heading) => {
    const slug = heading
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, "")
      .replace(/\s/g, "-");
    let anchor = slug;
    for (let count = 1; given.has(anchor); count++) anchor = `${slug}-${count}`;
    given.add(anchor);
    return anchor;
  };
}

/** Finds words that begin with one of the terms: "lease" in "leases", and not in "released". */
export function termPattern(terms: string[]): RegExp {
  const escaped = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join("|")})`, "giu");
}
