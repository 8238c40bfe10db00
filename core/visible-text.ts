/**
 * Text of customers within other people's formats: only visible characters, and line feeds as the only line ends.
 *
 * I1. What one reader takes for the end of a line, every reader does: YAML 1.1, JavaScript and editors differ on it.
 * I2. Characters that reorder or hide what is displayed do not remain: a text must read as it is interpreted.
 */

/** Every character that some language or editor treats as the end of a line. */
const LINE_ENDS = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;
/** Controls, lone surrogates, and code points that are no characters: readers of YAML refuse a file that has one. */
const INVISIBLE = /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/gu;
const REORDERING = /[\p{Bidi_Control}\ufeff]/gu;

export function visibleText(text: string): string {
  return visibleLines(text).join("\n");
}

export function visibleLines(text: string): string[] {
  return text.split(LINE_ENDS).map((line) => line.replace(INVISIBLE, " ").replace(REORDERING, ""));
}
