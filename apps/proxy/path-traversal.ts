/**
 * Finds path traversal in a path, however it is written: `..`, `.` and `\`, escaped, or escaped more than once.
 *
 * No call of the source has such a segment, and what it or anything before it makes of one is not ours to guess.
 */

/** Clients sometimes escape a name with a percent sign twice; more layers are treated as an attempt to hide traversal. */
const MAX_ESCAPES = 5;
const ESCAPE = /%([0-9a-f]{2})/gi;

/** @param path as it is sent, without the query */
export function hasTraversal(path: string): boolean {
  // As good as every path.
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

/** Control characters are dropped by some parsers of URLs, and `;` begins a parameter to others. */
function holdsTraversal(text: string): boolean {
  return (
    text.includes("\\") ||
    text.split("/").some((part) => /^\.{1,2}(?:;|$)/.test(part.replace(/\p{Cc}/gu, "")))
  );
}
