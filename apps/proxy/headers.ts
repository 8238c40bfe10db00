/** Decides which headers pass, in either direction (RFC 9110, section 7.6.1). */

import { withoutReadHeader } from "./cors";

/** Headers of one connection, not of the message. */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
/** With these, some frameworks use another method or path than the request line's, on which our decisions are based. */
const OVERRIDES = [
  "x-http-method-override",
  "x-http-method",
  "x-method-override",
  "x-original-url",
  "x-rewrite-url",
];
/** Set again for the upstream: its own name, and the length of the buffered body. */
const REQUEST_OWN = ["host", "content-length", "expect"];
/** Headers about the upstream's own domain, which do not apply to the proxy's. */
const ANSWER_OWN = ["set-cookie", "strict-transport-security"];

const NOT_SENT = new Set([...HOP_BY_HOP, ...REQUEST_OWN, ...OVERRIDES]);
const NOT_ANSWERED = new Set([...HOP_BY_HOP, ...ANSWER_OWN]);
const NONE: ReadonlySet<string> = new Set();

/** A request's headers by name, in lower case. */
export type RequestHeaders = Map<string, string>;

/** Returns the client's headers as they are sent to the upstream. */
export function requestHeaders(from: Headers): RequestHeaders {
  const named = namedBy(from.get("connection"));
  const headers: RequestHeaders = new Map();
  from.forEach((value, name) => {
    if (!NOT_SENT.has(name) && !named.has(name)) headers.set(name, value);
  });
  return withoutReadHeader(headers);
}

/** Returns the headers of an answer that are for the client. @param lines each header as it was sent */
export function answerHeaders(lines: readonly (readonly [name: string, value: string])[]): Headers {
  let connection = "";
  const passed: [string, string][] = [];
  for (const [name, value] of lines) {
    const key = name.toLowerCase();
    if (key === "connection") connection += `,${value}`;
    else if (!NOT_ANSWERED.has(key)) passed.push([name, value]);
  }
  const named = namedBy(connection);
  return new Headers(named.size > 0 ? passed.filter(([name]) => !named.has(name.toLowerCase())) : passed);
}

/** Returns the headers that a `Connection` header names: they belong to the connection, too. */
function namedBy(connection: string | null): ReadonlySet<string> {
  if (!connection) return NONE;
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}
