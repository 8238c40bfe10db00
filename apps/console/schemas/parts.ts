/** Shared parts of request and answer schemas, and of the description of the routes. */
import { t } from "elysia";
import type { ErrorCode } from "../../../core/errors";

/** Unknown properties are rejected: a misspelled setting must not pass for one that was set. */
export const strict = { additionalProperties: false };

export const nullable = <T extends Parameters<typeof t.Union>[0][number]>(type: T) =>
  t.Union([type, t.Null()]);

/** Entries of a list, unless the request says how many. */
export const LISTED = 100;
/** Rows of a long table on a page. */
export const LISTED_ON_PAGE = 2 * LISTED;

export const timestamp = t.String({ format: "date-time" });
export const timestampOf = (description: string) => t.String({ format: "date-time", description });

/**
 * One of these texts. Unlike the framework's enumerations, it has no default: what a request leaves out stays left out.
 *
 * @param meanings of some of them, for the description
 */
export function oneOf<const Value extends string>(
  values: readonly Value[],
  { meanings = {}, description }: { meanings?: { [one in Value]?: string }; description?: string } = {},
) {
  const literals = values.map((value) => t.Literal(value, { description: meanings[value] }));
  return t.Unsafe<Value>(t.Union(literals, { description }));
}

/** The key of a schema's name in the description of the API. */
export const COMPONENT = "x-component";
/** The key of a route's errors in its `detail`. */
export const ERRORS = "x-errors";

/**
 * Names a schema: the description of the API lists it once, and refers to it everywhere else.
 *
 * @param example of the whole; without it, one is made of the examples of its parts
 */
export function named<T extends object>(name: string, schema: T, example?: object): T {
  return { ...schema, [COMPONENT]: name, ...(example === undefined ? {} : { examples: [example] }) };
}

/** For a route's `detail`: the errors that the form of the request does not imply. */
export function raises(...codes: ErrorCode[]) {
  return { [ERRORS]: codes };
}
