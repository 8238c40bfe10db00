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

/** Returns the client's headers as they are sent to the upstream. */
export function requestHeaders(from: Headers): Headers {
  return withoutReadHeader(withoutHop(new Headers(from), [...REQUEST_OWN, ...OVERRIDES]));
}

/** Removes the headers of an answer that are not for the client. */
export function cleanAnswer(headers: Headers): Headers {
  return withoutHop(headers, ANSWER_OWN);
}

function withoutHop(headers: Headers, own: string[]): Headers {
  const named = headers.get("connection")?.split(",") ?? [];
  for (const name of named) {
    const trimmed = name.trim();
    // An invalid name (`Connection: "x y"`) names no header.
    if (/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(trimmed)) headers.delete(trimmed);
  }
  for (const name of HOP_BY_HOP) headers.delete(name);
  for (const name of own) headers.delete(name);
  return headers;
}
