/**
 * Detects path traversal in a path, in any notation: `..`, `.` and `\`, escaped once or several times.
 *
 * No call of the source has such a segment, and we do not guess how the source or an intermediary would interpret one.
 */

/** Clients sometimes escape a name with a percent sign twice; more layers are treated as an attempt to hide traversal. */
const MAX_ESCAPES = 5;
const ESCAPE = /%([0-9a-f]{2})/gi;

/** @param path as it is sent, without the query */
export function hasTraversal(path: string): boolean {
  // True for nearly every path.
  if (!/[.%\\]/.test(path)) return false;
  let text = path;
  for (let depth = 0; ; depth++) {
    if (holdsTraversal(text)) return true;
    const decoded = text.replace(ESCAPE, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    );
    if (decoded === text) return false;
    if (depth === MAX_ESCAPES) return true;
    text = decoded;
  }
}

/** Some URL parsers drop control characters, and for others `;` begins a parameter. */
function holdsTraversal(text: string): boolean {
  return (
    text.includes("\\") ||
    text.split("/").some((part) => /^\.{1,2}(?:;|$)/.test(part.replace(/\p{Cc}/gu, "")))
  );
}
