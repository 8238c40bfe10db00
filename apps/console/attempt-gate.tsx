/**
 * Refuses attempts of a client over its limit before anything else is done for the request: its body is not read, no
 * statement runs and no page is rendered, so that a flood of attempts does not slow other users' pages.
 */
import { pathOf } from "../../core/http";
import { LruMap } from "../../core/lru-map";
import { ErrorView } from "../../views/error";
import { Page } from "../../views/layout";
import { pageHeaders, pageText } from "../../views/render";
import { assetUrls } from "./assets";
import type { Auth } from "./auth/auth";
import { type LimitedAttempt, tooMany } from "./auth/limits";

/** The forms that strangers can send. */
const ATTEMPTS: Record<string, LimitedAttempt> = {
  "/sign-in": "sign-in",
  "/signup": "sign-up",
  "/forgot-password": "request-reset",
  "/reset-password": "reset-password",
  "/verify-email": "verify-email",
};

/** One page for each number of seconds to wait: as many as the longest window has. */
const MAX_PAGES = 600;

/** @returns a function that returns the refusal, or undefined for a request that must be handled */
export function attemptGate(auth: Pick<Auth, "refusedForSeconds">) {
  const pages = new LruMap<number, string>(MAX_PAGES);
  return (request: Request): Response | undefined => {
    if (request.method !== "POST") return undefined;
    const attempt = ATTEMPTS[pathOf(request)];
    const seconds = attempt === undefined ? 0 : auth.refusedForSeconds(request, attempt);
    if (seconds === 0) return undefined;
    const page = pages.get(seconds) ?? refusalPage(seconds);
    pages.set(seconds, page);
    const headers = { ...pageHeaders, "retry-after": String(seconds) };
    return new Response(page, { status: 429, headers });
  };
}

function refusalPage(seconds: number): string {
  return pageText(
    <Page title="Too many attempts" currentUser={null} width="narrow" assets={assetUrls}>
      <ErrorView title="Too many attempts" message={tooMany(seconds).message} requestId={undefined} />
    </Page>,
  );
}
