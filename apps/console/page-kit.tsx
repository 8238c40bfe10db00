/**
 * How pages are made and answered. A module of `routes/pages` exports `(ctx: ConsoleContext) => Elysia`, begins with
 * `.use(signedIn(ctx))` (or `anyone(ctx)`), is listed in `routes/pages/index.ts`, and its handlers return
 * `answer(request, { title, currentUser, active }, <View … />)` or `goTo(request, "/path")`.
 *
 * P1. Every request that changes something comes from a page of ours: `signedIn` and `anyone` check its origin, so no
 *     form needs a token and all of them work without JavaScript.
 * P2. A view's names and texts reach the markup through preact, which escapes them.
 */
import { Elysia } from "elysia";
import type { VNode } from "preact";
import type { CurrentUser } from "../../core/control/accounts";
import type { ManagementContext } from "../../core/control/bases";
import { BasetideError } from "../../core/errors";
import { Page, type PageProps } from "../../views/layout";
import { isHtmx, type RenderOptions, renderFragment, renderPage, securityHeaders } from "../../views/render";
import { assetUrls } from "./assets";
import type { Auth } from "./auth/auth";
import { refuseForeign } from "./same-origin";

/** What pages need beside the management of bases. */
export interface ConsoleContext extends ManagementContext {
  auth: Auth;
}

/** Stands for this console, whatever it is called; nobody's by its name. */
const OWN_ORIGIN = "http://own.invalid";

/** Pages for who has signed in: `currentUser` and its `account`. Others are sent to sign in, and come back after it. */
export function signedIn(ctx: ConsoleContext) {
  return new Elysia({ name: "signed-in" }).derive({ as: "scoped" }, async ({ request, set }) => {
    refuseForeign(request, ctx.config.consoleUrl);
    const currentUser = await findCurrentUser(ctx, request, set);
    if (!currentUser) throw new BasetideError("unauthorized", "Sign in first");
    return { currentUser, account: currentUser.account };
  });
}

/** Pages for everybody: `currentUser` is null for who has not signed in. */
export function anyone(ctx: ConsoleContext) {
  return new Elysia({ name: "anyone" }).derive({ as: "scoped" }, async ({ request, set }) => {
    refuseForeign(request, ctx.config.consoleUrl);
    return { currentUser: await findCurrentUser(ctx, request, set) };
  });
}

export interface Answer extends Omit<PageProps, "assets" | "children">, RenderOptions {}

/** The view alone to htmx, the whole page with it to a browser. */
export function answer(request: Request, page: Answer, view: VNode): Response {
  const { status, headers, ...props } = page;
  // The title is read out first: who sent a form learns at once that it did not go through.
  if (status === 422) props.title = `Error: ${props.title}`;
  if (isHtmx(request)) return renderFragment(view, { status, headers });
  return renderPage(
    <Page {...props} assets={assetUrls}>
      {view}
    </Page>,
    { status, headers },
  );
}

/** Go and look there: after what a form did, so that a reload does not do it again. `path` is one of ours. */
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

/** The text of a form's field, without spaces around it; empty when the form has it not, or not once. */
export function formText(body: unknown, name: string): string {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === "string" ? value.trim() : "";
}

/** The same as it was typed: a password may begin with a space. */
export function formSecret(body: unknown, name: string): string {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === "string" ? value : "";
}

/** `text` if it is the path of a page of ours, else `/`: who follows a link to sign in must not end up elsewhere. */
export function ownPath(text: string | null | undefined): string {
  const url = text?.startsWith("/") ? URL.parse(text, OWN_ORIGIN) : null;
  if (url?.origin !== OWN_ORIGIN) return "/";
  const path = `${url.pathname}${url.search}`;
  // Two slashes first name a host; `/..//host` has only one until it is resolved.
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
