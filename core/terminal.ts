/**
 * Makes text from others safe for a terminal: control characters move its cursor and change its title, and bidi
 * controls change the displayed order of a line (customers choose the names of bases, tables and fields).
 */

const UNSAFE = /[\p{Cc}\p{Bidi_Control}]/gu;

/** Returns `text` with all such characters except line breaks written as escapes. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (char) => (char === "\n" ? char : asEscape(char)));
}

/** The same for a value within a line: line breaks are escaped, too. */
export function printableValue(text: string): string {
  return text.replace(UNSAFE, asEscape);
}

/** Returns JSON that parses to the same value: `JSON.stringify` does not escape characters above U+001F. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE, (char) => (char < " " ? char : asEscape(char)));
}

function asEscape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
