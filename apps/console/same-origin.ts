/**
 * Prevents cross-site request forgery: a request that changes something must come from a page of this console.
 *
 * Browsers report the origin of a request, and no page can forge it: `Sec-Fetch-Site`, and in older browsers the
 * `Origin` of every POST. Cookies are also SameSite=Lax. A request with neither header is not a browser's form.
 */
import { BasetideError } from "../../core/errors";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** @throws BasetideError `forbidden` */
export function refuseForeign(request: Request, consoleUrl: string): void {
  if (SAFE_METHODS.has(request.method) || isOwn(request, consoleUrl)) return;
  throw new BasetideError(
    "forbidden",
    "This form was sent from another site. Open the page here and submit it again",
  );
}

function isOwn(request: Request, consoleUrl: string): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = request.headers.get("origin");
  if (origin === null) return false;
  if (origin === new URL(consoleUrl).origin) return true;
  // If the console is reached under another name than CONSOLE_URL (127.0.0.1, a tunnel), the requested host counts.
  return URL.parse(origin)?.host === (request.headers.get("host") ?? new URL(request.url).host);
}
