/**
 * Cross-site request forgery: what changes something must come from a page of this console.
 *
 * Browsers say where a request comes from, and no page can make them lie: `Sec-Fetch-Site`, and on older ones the
 * `Origin` of every POST. Cookies are SameSite=Lax besides. A request that says neither is no browser's form.
 */
import { BasetideError } from "../../core/errors";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** @throws BasetideError `forbidden` */
export function refuseForeign(request: Request, consoleUrl: string): void {
  if (SAFE_METHODS.has(request.method) || isOwn(request, consoleUrl)) return;
  throw new BasetideError(
    "forbidden",
    "This form was sent from another site; open the page here and send it again",
  );
}

function isOwn(request: Request, consoleUrl: string): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = request.headers.get("origin");
  if (origin === null) return false;
  if (origin === new URL(consoleUrl).origin) return true;
  // Reached under another name than CONSOLE_URL (127.0.0.1, a tunnel): then it is the host that was asked.
  return URL.parse(origin)?.host === (request.headers.get("host") ?? new URL(request.url).host);
}
