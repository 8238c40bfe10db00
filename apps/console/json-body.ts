/**
 * Reads the bodies of the API, which are JSON. Rejects, by reading it as null, a body that no call takes and that the library's
 * report of invalid bodies cannot handle: it prints the value indented, which takes five seconds for 20 kB of nested
 * lists.
 */
import { BasetideError } from "../../core/errors";

/** The deepest nesting of a body that is accepted; our own schemas use three levels. */
const MAX_DEPTH = 20;
/** Keys that define how an object is printed: with a wrong value in one of them, it cannot be printed. */
const WRITING = ["toString", "valueOf", "toJSON"];

/** Stands for a body of another type, until the caller's token is verified. */
export const NOT_JSON = Symbol("not JSON");

/**
 * A parser for `onParse`.
 *
 * @returns NOT_JSON for a body of another type, or of no type
 * @throws SyntaxError if the body is not JSON
 */
export async function parseJsonBody(request: Request, contentType: string): Promise<unknown> {
  if (contentType !== "application/json") {
    // Some clients name a type although they send nothing.
    return (await request.arrayBuffer()).byteLength === 0 ? null : NOT_JSON;
  }
  const text = await request.text();
  // Calls without parameters have an empty body.
  const body: unknown = text === "" ? null : JSON.parse(text);
  return isPlain(body, MAX_DEPTH) ? body : null;
}

/** @throws BasetideError `unsupported_media_type` */
export function requireJson(body: unknown, request: Request): void {
  if (body !== NOT_JSON) return;
  const type = request.headers.get("content-type");
  const given = type === null ? "has no content-type" : "has another content-type";
  throw new BasetideError(
    "unsupported_media_type",
    `The body ${given}. Send it as JSON, with \`content-type: application/json\``,
  );
}

function isPlain(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth === 0 || WRITING.some((key) => Object.hasOwn(value, key))) return false;
  return Object.values(value).every((part) => isPlain(part, depth - 1));
}
