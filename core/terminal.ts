/**
 * Text that others may have written, made safe for a terminal: control characters move its cursor and change its title,
 * and bidi controls show a line in another order than it has (names of bases, tables and fields are customers' words).
 */

const UNSAFE = /[\p{Cc}\p{Bidi_Control}]/gu;

/** `text` with all of these but its line breaks written as escapes. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (char) => (char === "\n" ? char : asEscape(char)));
}

/** The same for a value within a line: it makes no line of its own. */
export function printableValue(text: string): string {
  return text.replace(UNSAFE, asEscape);
}

/** JSON that parses to the same: `JSON.stringify` leaves what is above U+001F as it is. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE, (char) => (char < " " ? char : asEscape(char)));
}

function asEscape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
