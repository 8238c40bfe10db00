/**
 * Shows an error as a page: what happened, what to do, and an id to find it in the log. A visitor who is not signed in
 * is sent to the sign-in page, and returns afterwards.
 */
import type { CurrentUser } from "../../core/control/accounts";
import type { BasetideError } from "../../core/errors";
import { pathOf } from "../../core/http";
import { type ErrorForCaller, explainError } from "../../core/http/service";
import type { Logger } from "../../core/log";
import { ErrorNote } from "../../views/components";
import { ErrorView } from "../../views/error";
import { isHtmx, renderFragment } from "../../views/render";
import type { Auth } from "./auth/auth";
import { answer, goTo } from "./page-kit";

/** Returns whether a person will see the answer. Programs ask for JSON, or send no preference. */
export function isForPerson(request: Request): boolean {
  if (pathOf(request).startsWith("/api/")) return false;
  return request.headers.get("accept")?.includes("text/html") === true || isHtmx(request);
}

/** @param code Elysia's code for its own errors */
export async function answerPageError(
  ctx: { log: Logger; auth: Auth },
  request: Request,
  error: unknown,
  code: string | number,
): Promise<Response> {
  const known = explainError(ctx.log, request, error, code);
  if ((error as Partial<BasetideError>).code === "unauthorized") return goTo(request, signInPath(request));
  // If a part of the page fails, the rest stays as it is; a part that polls tries again.
  if (isHtmx(request)) {
    return renderFragment(<PartError error={known} />, {
      status: known.status,
      headers: { "hx-retarget": "#trouble", "hx-reswap": "innerHTML" },
    });
  }
  const title = titles[known.status] ?? "That did not work";
  return answer(
    request,
    {
      title,
      width: "narrow",
      status: known.status,
      headers: {
        "x-request-id": known.requestId,
        ...(known.retryAfterSeconds === undefined ? {} : { "retry-after": String(known.retryAfterSeconds) }),
      },
      currentUser: known.status < 500 ? await findCurrentUser(ctx.auth, request) : undefined,
    },
    <ErrorView
      title={title}
      message={known.message}
      requestId={known.status >= 500 ? known.requestId : undefined}
    />,
  );
}

/** For the links in the bar. The error page is shown even if the user cannot be loaded. */
async function findCurrentUser(auth: Auth, request: Request): Promise<CurrentUser | null | undefined> {
  try {
    return (await auth.currentUser(request)).currentUser;
  } catch {
    return undefined;
  }
}

const titles: Record<number, string> = {
  403: "Not allowed",
  404: "Page not found",
  500: "Something went wrong on our side",
  503: "Temporarily unavailable",
};

function PartError({ error }: { error: ErrorForCaller }) {
  return (
    <ErrorNote title={(error.status >= 500 && titles[error.status]) || "That did not work"}>
      {error.message}
      {error.status >= 500 ? (
        <p class="small">
          Request <code>{error.requestId}</code>
        </p>
      ) : null}
    </ErrorNote>
  );
}

/** Returns to this page after sign-in; for a fragment or a form, to the page that it belongs to. */
function signInPath(request: Request): string {
  const current = request.headers.get("hx-current-url") ?? request.headers.get("referer");
  const from = request.method === "GET" && !isHtmx(request) ? request.url : current;
  const url = from === null ? null : URL.parse(from);
  const next = url ? url.pathname + url.search : "/";
  return next === "/" ? "/sign-in" : `/sign-in?${new URLSearchParams({ next })}`;
}
