/**
 * Refuses attempts of a client over its limit before anything else is done for the request: its body is not read, no
 * statement runs and no page is rendered, so that a flood of attempts does not slow other users' pages.
 */
import { pathOf } from "../../core/http";
import { LruMap } from "../../core/lru-map";
import { ErrorView } from "../../views/error";
import { type Theme, themes } from "../../views/frame/theme";
import { Page } from "../../views/layout";
import { pageHeaders, pageText } from "../../views/render";
import { assetUrls } from "./assets";
import type { Auth } from "./auth/auth";
import { type LimitedAttempt, tooMany } from "./auth/limits";
import { themeOf } from "./cookies";

/** The forms that strangers can send. */
const ATTEMPTS: Record<string, LimitedAttempt> = {
  "/sign-in": "sign-in",
  "/sign-in/code": "sign-in-code",
  "/signup": "sign-up",
  "/forgot-password": "request-reset",
  "/reset-password": "reset-password",
  "/verify-email": "verify-email",
};

/** One page for each theme and number of seconds to wait: as many as the longest window has. */
const MAX_PAGES = 600 * themes.length;

/** @returns a function that returns the refusal, or undefined for a request that must be handled */
export function attemptGate(auth: Pick<Auth, "refusedForSeconds">) {
  const pages = new LruMap<string, string>(MAX_PAGES);
  return (request: Request): Response | undefined => {
    if (request.method !== "POST") return undefined;
    const attempt = ATTEMPTS[pathOf(request)];
    const seconds = attempt === undefined ? 0 : auth.refusedForSeconds(request, attempt);
    if (seconds === 0) return undefined;
    const theme = themeOf(request);
    const key = `${theme} ${seconds}`;
    const page = pages.get(key) ?? refusalPage(seconds, theme);
    pages.set(key, page);
    const headers = { ...pageHeaders, "retry-after": String(seconds) };
    return new Response(page, { status: 429, headers });
  };
}

function refusalPage(seconds: number, theme: Theme): string {
  return pageText(
    <Page title="Too many attempts" currentUser={null} width="narrow" theme={theme} assets={assetUrls}>
      <ErrorView title="Too many attempts" message={tooMany(seconds).message} requestId={undefined} />
    </Page>,
  );
}
