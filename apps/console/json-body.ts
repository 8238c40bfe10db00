/**
 * Reads the JSON bodies of the API. Rejects, by reading it as null, a body that no call takes and that the library's
 * report of invalid bodies cannot handle: it prints the value indented, which takes five seconds for 20 kB of nested
 * lists.
 */

/** The deepest nesting of a body that is accepted; our own schemas use three levels. */
const MAX_DEPTH = 20;
/** Keys that define how an object is printed: with a wrong value in one of them, it cannot be printed. */
const WRITING = ["toString", "valueOf", "toJSON"];

/**
 * A parser for `onParse`. Returns undefined for bodies of other types, which other parsers handle.
 *
 * @throws SyntaxError if the body is not JSON
 */
export async function parseJsonBody(request: Request, contentType: string): Promise<unknown> {
  if (contentType !== "application/json") return undefined;
  const text = await request.text();
  // Calls without parameters have an empty body.
  const body: unknown = text === "" ? null : JSON.parse(text);
  return isPlain(body, MAX_DEPTH) ? body : null;
}

function isPlain(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth === 0 || WRITING.some((key) => Object.hasOwn(value, key))) return false;
  return Object.values(value).every((part) => isPlain(part, depth - 1));
}
