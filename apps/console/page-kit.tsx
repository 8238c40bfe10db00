/**
 * The helpers with which pages are built and answered. A module of `routes/pages` exports `(ctx: ConsoleContext) =>
 * Elysia`, begins with `.use(signedIn(ctx))` (or `onOneBase(ctx)`, or `anyone(ctx)`), is listed in `routes/pages/index.ts`, and its handlers
 * return `page({ title, active }, <View … />)` (or `basePage`, or `answer`), or `goTo(request, "/path")`.
 *
 * P1. Every request that changes something comes from a page of ours: `signedIn` and `anyone` check its origin, so no
 *     form needs a token and all of them work without JavaScript.
 * P2. `signedIn` checks that the user's role in the account allows the route (`access.ts`), and `answer` tells
 *     the components what the role allows.
 * P3. A view's names and texts reach the markup through preact, which escapes them.
 */
import { Elysia } from "elysia";
import type { VNode } from "preact";
import type { FreshUrls } from "../../core/attachments";
import { actorOf, type CurrentUser } from "../../core/control/accounts";
import type { ManagementContext } from "../../core/control/bases";
import { BasetideError } from "../../core/errors";
import { PermittedProvider } from "../../views/components";
import { Page, type PageProps } from "../../views/layout";
import { isHtmx, type RenderOptions, renderFragment, renderPage, securityHeaders } from "../../views/render";
import { offersTo, permissionFor, requireRole } from "./access";
import { assetUrls } from "./assets";
import type { Auth } from "./auth/auth";
import { themeOf } from "./cookies";
import { type Flash, type FlashContext, flashCookie, noFlashCookie, readFlash } from "./flash";
import { refuseForeign } from "./same-origin";

/** What pages need in addition to the management of bases. */
export interface ConsoleContext extends ManagementContext {
  auth: Auth;
  attachmentUrls: FreshUrls;
}

/** A placeholder for this console's own origin, whatever its name is. The name is reserved and belongs to no host. */
const OWN_ORIGIN = "http://own.invalid";

/** Pages for signed-in users: provides what `admitted` returns. Other visitors sign in first and then return. */
export function signedIn(ctx: ConsoleContext) {
  return new Elysia({ name: "signed-in" }).derive({ as: "scoped" }, (call) => admitted(ctx, call));
}

export type PageCall = Awaited<ReturnType<typeof admitted>> & { request: Request };

export async function admitted(
  ctx: ConsoleContext,
  { request, route, set }: { request: Request; route: string; set: Parameters<typeof findCurrentUser>[2] },
) {
  refuseForeign(request, ctx.config.consoleUrl);
  const currentUser = await findCurrentUser(ctx, request, set);
  if (!currentUser) throw new BasetideError("unauthorized", "Sign in first");
  requireRole(currentUser, permissionFor(request.method, route));
  rememberFlash(ctx, request, currentUser.sessionId);
  return {
    currentUser,
    account: currentUser.account,
    /** For what changes something: the user is its author. */
    by: { ...ctx, actor: actorOf(currentUser) },
    page: (facts: Omit<PageFacts, "currentUser">, view: VNode) =>
      answer(request, { ...facts, currentUser }, view),
  };
}

/** Pages for everyone: `currentUser` is null for a visitor who is not signed in. */
export function anyone(ctx: ConsoleContext) {
  return new Elysia({ name: "anyone" }).derive({ as: "scoped" }, async ({ request, set }) => {
    refuseForeign(request, ctx.config.consoleUrl);
    const currentUser = await findCurrentUser(ctx, request, set);
    rememberFlash(ctx, request, currentUser?.sessionId);
    return { currentUser };
  });
}

/** The flash of each request that `signedIn` or `anyone` has seen, and the means to leave one for the next page. */
const flashes = new WeakMap<Request, { ctx: FlashContext; flash: Flash | null }>();

function rememberFlash(ctx: ConsoleContext, request: Request, sessionId: string | undefined): void {
  const context = { secrets: ctx.secrets, consoleUrl: ctx.config.consoleUrl, sessionId };
  flashes.set(request, { ctx: context, flash: isHtmx(request) ? null : readFlash(context, request) });
}

/** What the form before this page left for it alone, such as a new token; a reload does not show it again. */
export function onceOf(request: Request): Record<string, string> {
  return flashes.get(request)?.flash?.once ?? {};
}

export interface PageFacts
  extends Omit<PageProps, "assets" | "children" | "theme" | "toast">,
    RenderOptions {}

/** Answers htmx with the view alone, and a browser with the whole page. */
export function answer(request: Request, page: PageFacts, view: VNode): Response {
  const { status, headers, ...props } = page;
  const role = props.currentUser?.account.role;
  const permitted = (node: VNode) =>
    role ? <PermittedProvider value={offersTo(role)}>{node}</PermittedProvider> : node;
  // Screen readers read the title first, so a user who sent a form learns at once that it failed.
  if (status === 422) props.title = `Error: ${props.title}`;
  if (isHtmx(request)) return renderFragment(permitted(view), { status, headers });
  const left = flashes.get(request);
  const response = renderPage(
    permitted(
      <Page {...props} theme={themeOf(request)} toast={left?.flash?.toast} assets={assetUrls}>
        {view}
      </Page>,
    ),
    { status, headers },
  );
  if (left?.flash) response.headers.append("set-cookie", noFlashCookie(left.ctx.consoleUrl));
  return response;
}

/** Answers a poll of a part that is to stay as it is. */
export function noNews(): Response {
  return new Response(null, { status: 204, headers: { ...securityHeaders, "cache-control": "no-store" } });
}

/**
 * Redirects after a form has changed something, and shows a toast or a secret on the page at `path`, once.
 *
 * @param flash a toast's text, or a toast and what only the next page shows (`onceOf`)
 */
export function finish(request: Request, path: string, flash: string | Flash, headers?: Headers): Response {
  const left = flashes.get(request);
  const all = new Headers(headers);
  const content = typeof flash === "string" ? { toast: { text: flash } } : flash;
  if (left) all.append("set-cookie", flashCookie(left.ctx, path, content));
  return goTo(request, path, all);
}

/** Redirects after a form has changed something, so that a reload does not repeat it. `path` is one of ours. */
export function goTo(request: Request, path: string, headers: Headers = new Headers()): Response {
  const all = new Headers({ ...securityHeaders, "cache-control": "no-store" });
  for (const [name, value] of headers) all.append(name, value);
  if (isHtmx(request)) {
    all.set("hx-redirect", path);
    return new Response(null, { status: 204, headers: all });
  }
  all.set("location", path);
  return new Response(null, { status: 303, headers: all });
}

/** The text of a form's field without surrounding spaces; empty if the form does not have the field exactly once. */
export function formText(body: unknown, name: string): string {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === "string" ? value.trim() : "";
}

/** The text exactly as it was typed: a password may begin with a space. */
export function formSecret(body: unknown, name: string): string {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === "string" ? value : "";
}

/** Returns `text` if it is the path of a page of ours, else `/`: a link to sign in must not lead to another site. */
export function ownPath(text: string | null | undefined): string {
  const url = text?.startsWith("/") ? URL.parse(text, OWN_ORIGIN) : null;
  if (url?.origin !== OWN_ORIGIN) return "/";
  const path = `${url.pathname}${url.search}`;
  // Two leading slashes name a host; `/..//host` has only one until it is resolved.
  return path.startsWith("//") ? "/" : path;
}

async function findCurrentUser(
  ctx: ConsoleContext,
  request: Request,
  set: { headers: Record<string, string | number | string[] | undefined> },
): Promise<CurrentUser | null> {
  const { currentUser, cookies } = await ctx.auth.currentUser(request);
  if (cookies.length > 0) set.headers["set-cookie"] = cookies;
  return currentUser;
}
