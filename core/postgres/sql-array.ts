/** Array parameters of statements as text, which needs no lookup of the server's types. */

/** Formats an array parameter: strings are quoted, other values stay as they are, and null is `NULL`. */
export function arrayOf<T>(items: readonly T[], elementOf: (item: T) => unknown): string {
  let text = "{";
  for (const item of items) {
    const value = elementOf(item);
    if (text.length > 1) text += ",";
    text += typeof value === "string" ? quoted(value) : (value ?? "NULL");
  }
  return `${text}}`;
}

/** Whatever an array's element cannot contain as it is. */
const ESCAPED = /["\\]/;

function quoted(text: string): string {
  return `"${ESCAPED.test(text) ? text.replaceAll(/["\\]/g, "\\$&") : text}"`;
}
