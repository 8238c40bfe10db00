/**
 * Reads the JSON bodies of the API. What no call takes, and what the library's account of a refused body would choke on
 * (it writes the value out, indented: 20 kB of nested lists take it five seconds), is read as null and so refused.
 */

/** Levels that a body may have: ours have three. */
const MAX_DEPTH = 20;
/** Keys by which an object says how it is written: one that says it wrongly cannot be. */
const WRITING = ["toString", "valueOf", "toJSON"];

/**
 * A parser for `onParse`; undefined leaves bodies of other types to others.
 *
 * @throws SyntaxError if the body is not JSON
 */
export async function parseJsonBody(request: Request, contentType: string): Promise<unknown> {
  if (contentType !== "application/json") return undefined;
  const text = await request.text();
  // Calls without parameters have none.
  const body: unknown = text === "" ? null : JSON.parse(text);
  return isPlain(body, MAX_DEPTH) ? body : null;
}

function isPlain(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth === 0 || WRITING.some((key) => Object.hasOwn(value, key))) return false;
  return Object.values(value).every((part) => isPlain(part, depth - 1));
}
