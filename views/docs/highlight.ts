/**
 * Finds comments, texts, numbers, keywords and variables of a program, to color them. One expression per language, so
 * it knows no grammar: an unknown language, and anything it does not find, stays plain.
 */

type Kind = "comment" | "string" | "number" | "keyword" | "variable" | "key";
/** Plain text, or a text with a color. The texts together are the program. */
type CodePart = string | { kind: Kind; text: string };

const NUMBER = String.raw`(?<number>(?<![\w$])\d[\d_.]*\b)`;
const TEXTS = String.raw`(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`;

const words = (list: string) =>
  String.raw`(?<keyword>(?<![\w$.-])(?:${list.replaceAll(" ", "|")})(?![\w$-]))`;

const SQL = words(
  "add all alter and any array as asc by case cast copy count create cross default delete desc distinct do drop else end exists explain for foreign from full function grant group having if in index inner insert interval into is join key left like limit materialized not null on or order outer primary references refresh replace returning revoke right role schema select set table then to trigger true false union unique unnest update user using values view when where with within",
);
const JS = words(
  "as async await break case catch class const continue default else export extends finally for from function if import in instanceof let new null of return switch throw true false try typeof undefined var while",
);
const PYTHON = words(
  "and as async await class def elif else except False finally for from if import in is lambda None not or pass raise return True try while with yield",
);
const SHELL = words(
  "bun bunx cd chrt cp createdb curl docker echo exec export for do done if then fi git kubectl mkdir nft npm npx openssl pg_dump pg_restore psql pip sudo systemctl test",
);

const patterns: Record<string, string[]> = {
  sql: [String.raw`(?<comment>--[^\n]*|/\*[\s\S]*?\*/)`, TEXTS, SQL, NUMBER],
  js: [String.raw`(?<comment>(?<!:)//[^\n]*|/\*[\s\S]*?\*/)`, TEXTS, JS, NUMBER],
  json: [String.raw`(?<key>"(?:[^"\\\n]|\\.)*"(?=\s*:))`, TEXTS, words("true false null"), NUMBER],
  python: [String.raw`(?<comment>#[^\n]*)`, TEXTS, PYTHON, NUMBER],
  sh: [String.raw`(?<comment>(?<=^|\s)#[^\n]*)`, String.raw`(?<variable>\$\{?\w+\}?)`, TEXTS, SHELL],
  yaml: [
    String.raw`(?<comment>(?<=^|\s)#[^\n]*)`,
    String.raw`(?<key>(?<=^|[\n\s-])[\w.-]+(?=:))`,
    TEXTS,
    NUMBER,
  ],
};

const expressions = new Map(
  Object.entries(patterns).map(([language, parts]) => [language, new RegExp(parts.join("|"), "gi")]),
);

export function highlight(code: string, language: string): CodePart[] {
  const expression = expressions.get(language);
  if (!expression) return [code];
  const parts: CodePart[] = [];
  let end = 0;
  for (const match of code.matchAll(expression)) {
    const found = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined);
    if (!found) continue;
    if (match.index > end) parts.push(code.slice(end, match.index));
    parts.push({ kind: found[0] as Kind, text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < code.length) parts.push(code.slice(end));
  return parts;
}
