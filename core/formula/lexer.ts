/**
 * Splits a formula's text into tokens.
 */
/** A text that is not a formula. The message is the tail of the API's own, which users see. */
export class FormulaSyntaxError extends Error {
  override readonly name = "FormulaSyntaxError";

  constructor(message = "Invalid formula. Please check your formula text.") {
    super(message);
  }
}

/** `text`: as it is written, with its quotes, braces and escapes. */
export type Token =
  | { kind: "number"; value: number; text: string }
  | { kind: "string"; value: string; text: string }
  | { kind: "field"; name: string; text: string }
  | { kind: "word"; text: string }
  | { kind: "symbol"; text: string };

const SPACE = /\s+/y;
const NUMBER = /(?:\d+(?:\.\d+)?|\.\d+)(?![\p{L}\p{N}_.])/uy;
const WORD = /[\p{L}_][\p{L}\p{M}\p{N}_]*/uy;
const SYMBOL = /!=|<=|>=|[-+*/&=<>(),]/y;

const ESCAPES: Record<string, string> = { n: "\n", r: "\r", t: "\t" };

/** @throws FormulaSyntaxError for a character that starts no token, and for an unclosed string or field */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let position = 0;

  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = position;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) position += found.length;
    return found;
  };

  while (position < text.length) {
    if (take(SPACE) !== undefined) continue;
    const start = text[position];
    if (start === "'" || start === '"') {
      const { value, end } = readUntil(text, position + 1, start, stringEscape);
      tokens.push({ kind: "string", value, text: text.slice(position, end) });
      position = end;
      continue;
    }
    if (start === "{") {
      const { value, end } = readUntil(text, position + 1, "}", fieldEscape);
      tokens.push({ kind: "field", name: value, text: text.slice(position, end) });
      position = end;
      continue;
    }
    const number = take(NUMBER);
    if (number !== undefined) {
      tokens.push({ kind: "number", value: Number(number), text: number });
      continue;
    }
    const word = take(WORD);
    if (word !== undefined) {
      tokens.push({ kind: "word", text: word });
      continue;
    }
    const symbol = take(SYMBOL);
    if (symbol === undefined) throw new FormulaSyntaxError();
    tokens.push({ kind: "symbol", text: symbol });
  }
  return tokens;
}

/** Reads up to the first unescaped `close`; `end` is the position after it. */
function readUntil(
  text: string,
  start: number,
  close: string,
  readEscape: (character: string) => string,
): { value: string; end: number } {
  let value = "";
  let copied = start;
  for (let at = start; at < text.length; at++) {
    if (text[at] === close) return { value: value + text.slice(copied, at), end: at + 1 };
    if (text[at] !== "\\") continue;
    const escaped = text[at + 1];
    if (escaped === undefined) break;
    value += text.slice(copied, at) + readEscape(escaped);
    at++;
    copied = at + 1;
  }
  throw new FormulaSyntaxError();
}

/** An unknown escape keeps its backslash, so that both `'\d'` and `'\\d'` are the digit class of a pattern. */
function stringEscape(character: string): string {
  if (character === "\\" || character === "'" || character === '"') return character;
  return ESCAPES[character] ?? `\\${character}`;
}

/** Only what would end a name needs escaping; any other backslash is part of the name. */
function fieldEscape(character: string): string {
  return character === "}" || character === "{" || character === "\\" ? character : `\\${character}`;
}
