/**
 * Reads the bodies of the API, which are JSON. Rejects a body that no call takes and that the library's report of invalid
 * bodies cannot handle: it prints the value indented, which takes five seconds for 20 kB of nested lists.
 */
import { BasetideError } from "../../core/errors";
import { nestsDeeper } from "../../core/nesting";

/** The deepest nesting of a body that is accepted; our own schemas use three levels. */
const MAX_DEPTH = 20;
/** Keys that define how an object is printed: with a wrong value in one of them, it cannot be printed. */
const WRITING = ["toString", "valueOf", "toJSON"];

/** They stand for a body of another type, and for one that nests too deeply, until the caller's token is verified. */
const NOT_JSON = Symbol("not JSON");
const TOO_DEEP = Symbol("too deep");

/**
 * A parser for `onParse`.
 *
 * @returns what `requireJson` accepts or rejects
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
  if (nestsDeeper(body, MAX_DEPTH)) return TOO_DEEP;
  return isPrintable(body) ? body : null;
}

/** @throws BasetideError `unsupported_media_type`; `invalid_request` if the body nests too deeply */
export function requireJson(body: unknown, request: Request): void {
  if (body === TOO_DEEP) {
    throw new BasetideError(
      "invalid_request",
      `The body nests lists and objects in more than ${MAX_DEPTH} levels. No call takes more than three`,
    );
  }
  if (body !== NOT_JSON) return;
  const type = request.headers.get("content-type");
  const given = type === null ? "has no content-type" : "has another content-type";
  throw new BasetideError(
    "unsupported_media_type",
    `The body ${given}. Send it as JSON, with \`content-type: application/json\``,
  );
}

function isPrintable(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (WRITING.some((key) => Object.hasOwn(value, key))) return false;
  return Object.values(value).every(isPrintable);
}
