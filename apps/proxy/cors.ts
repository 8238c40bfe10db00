/**
 * Lets browsers use the proxy's own headers from another origin: what a preflight allows, and which headers of an
 * answer a script may read (Fetch standard, "CORS protocol"). The source handles the rest of CORS.
 */

import type { RequestHeaders } from "./headers";

/** `x-basetide-read: replica`: the only header of ours that a request may have. */
export const READ_HEADER = "x-basetide-read";

const ASKED = "access-control-request-headers";
const ALLOWED = "access-control-allow-headers";

/** Sets a header of ours on an answer, and exposes it to scripts of any origin. */
export function setExposed(headers: Headers, name: string, value: string): void {
  headers.set(name, value);
  headers.append("access-control-expose-headers", name);
}

/** Removes our header from those that a preflight requests: the source does not know it. */
export function withoutReadHeader(headers: RequestHeaders): RequestHeaders {
  const asked = headers.get(ASKED);
  if (asked === undefined || !asksForReadHeader(asked)) return headers;
  const others = names(asked).filter((name) => name.toLowerCase() !== READ_HEADER);
  if (others.length > 0) headers.set(ASKED, others.join(","));
  else headers.delete(ASKED);
  return headers;
}

/** Adds our header to those that the source's answer to a preflight allows, if the preflight requests it. */
export function allowReadHeader(request: Request, answer: Response): Response {
  if (answer.ok && asksForReadHeader(request.headers.get(ASKED) ?? "")) {
    answer.headers.append(ALLOWED, READ_HEADER);
  }
  return answer;
}

function asksForReadHeader(asked: string): boolean {
  return names(asked).some((name) => name.toLowerCase() === READ_HEADER);
}

function names(list: string): string[] {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
}
