/** Which headers pass, in either direction (RFC 9110, section 7.6.1). */

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
/** By these some frameworks take another method or path than the request line's, which is what was decided on. */
const OVERRIDES = [
  "x-http-method-override",
  "x-http-method",
  "x-method-override",
  "x-original-url",
  "x-rewrite-url",
];
/** Made anew for the upstream: its own name, and the length of a body that we hold whole. */
const REQUEST_OWN = ["host", "content-length", "expect"];
/** The upstream's word on its own domain, which the proxy's is not. */
const ANSWER_OWN = ["set-cookie", "strict-transport-security"];

/** The client's headers as the upstream gets them. */
export function requestHeaders(from: Headers): Headers {
  return withoutReadHeader(withoutHop(new Headers(from), [...REQUEST_OWN, ...OVERRIDES]));
}

/** Takes out of an answer's headers what is not for the client. */
export function cleanAnswer(headers: Headers): Headers {
  return withoutHop(headers, ANSWER_OWN);
}

function withoutHop(headers: Headers, own: string[]): Headers {
  const named = headers.get("connection")?.split(",") ?? [];
  for (const name of named) {
    const trimmed = name.trim();
    // A name that is none (`Connection: "x y"`) names no header.
    if (/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(trimmed)) headers.delete(trimmed);
  }
  for (const name of HOP_BY_HOP) headers.delete(name);
  for (const name of own) headers.delete(name);
  return headers;
}
