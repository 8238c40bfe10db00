/**
 * What browsers need to use the proxy's own headers from another origin: what a preflight allows, and what a script may
 * see of an answer (Fetch standard, "CORS protocol"). Everything else of it is the source's.
 */

/** `x-basetide-read: replica`: the one header of ours that a request may have. */
export const READ_HEADER = "x-basetide-read";

const ASKED = "access-control-request-headers";
const ALLOWED = "access-control-allow-headers";

/** Sets a header of ours on an answer, so that a script of any origin sees it. */
export function setExposed(headers: Headers, name: string, value: string): void {
  headers.set(name, value);
  headers.append("access-control-expose-headers", name);
}

/** Removes our header from those that a preflight asks for: the source does not know it. */
export function withoutReadHeader(headers: Headers): Headers {
  const asked = headers.get(ASKED);
  if (asked === null || !asksForReadHeader(asked)) return headers;
  const others = names(asked).filter((name) => name.toLowerCase() !== READ_HEADER);
  if (others.length > 0) headers.set(ASKED, others.join(","));
  else headers.delete(ASKED);
  return headers;
}

/** Adds our header to what the source's answer to a preflight allows, if the preflight asks for it. */
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
