/**
 * A request as the API's handlers see it, and the answer that they return.
 */
import type { AccessKey } from "./auth";
import { apiError } from "./errors";
import type { PageBytes } from "./page";

export interface ApiRequest {
  /** Upper case. */
  method: string;
  /** Decoded path segments after `v0`, without empty ones. */
  segments: string[];
  query: Query;
  /** A header of the request, by its lower-case name. */
  header(name: string): string | null;
  /** The body, read before the handler ran. */
  body: Uint8Array;
  key: AccessKey;
  /** The fault to apply to a list. */
  listFault?: ListFault;
}

export type ListFault = "empty_list" | "repeat_page" | "endless_list";

/** Pairs in the order of the query. */
export type Query = [name: string, value: string][];

export interface ApiAnswer {
  status: number;
  /** Sent as JSON. */
  json?: unknown;
  /** JSON that is ready to send. */
  text?: string;
  /** A list page instead, with the text after its records. */
  page?: { bytes: PageBytes; tail: string };
}

export function okAnswer(json: unknown): ApiAnswer {
  return { status: 200, json };
}

/** Parses `a=1&b%5B%5D=x+y` to pairs; `+` is a space, and text that cannot be decoded stays as it is. */
export function parseQuery(text: string): Query {
  if (text === "") return [];
  return text
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const equals = pair.indexOf("=");
      if (equals < 0) return [decode(pair, true), ""];
      return [decode(pair.slice(0, equals), true), decode(pair.slice(equals + 1), true)];
    });
}

/** In a path, a `+` is a plus. */
export function parseSegments(path: string): string[] {
  return path
    .split("/")
    .filter((segment) => segment !== "")
    .map((segment) => decode(segment, false));
}

function decode(text: string, plusIsBlank: boolean): string {
  const blanks = plusIsBlank && text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!blanks.includes("%")) return blanks;
  try {
    return decodeURIComponent(blanks);
  } catch {
    return blanks;
  }
}

/**
 * Returns the request's body as a JSON object.
 *
 * @throws ApiError 422 `INVALID_REQUEST_BODY`
 */
export function jsonBody(request: ApiRequest): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(request.body));
  } catch {
    value = undefined;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw apiError(422, "INVALID_REQUEST_BODY", "Could not parse request body");
}

/** `true`, `1`, true → true; absent, `false`, `0`, false → false; anything else is undefined. */
export function booleanOf(value: unknown): boolean | undefined {
  if (
    value === undefined ||
    value === null ||
    value === false ||
    value === "false" ||
    value === "0" ||
    value === 0
  )
    return false;
  return value === true || value === "true" || value === "1" || value === 1 ? true : undefined;
}
