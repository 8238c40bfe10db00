/** What the service sends, as a terminal may show it: names of customers' tables may hold control characters. */
const UNSAFE = /[\p{Cc}\p{Bidi_Control}]/gu;

/** Returns `text` with all such characters except line breaks written as escapes. */
export function escapeControls(text: string): string {
  return text.replace(UNSAFE, (char) =>
    char === "\n" ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
