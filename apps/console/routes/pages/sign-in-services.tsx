/** Sign-in with other services: at the sign-in page, and linked to a user under Settings. */
import { Elysia } from "elysia";
import { unlinkService } from "../../../../core/control/accounts";
import { BasetideError } from "../../../../core/errors";
import { securityHeaders } from "../../../../views/render";
import { anyone, type ConsoleContext, finish, goTo, ownPath, signedIn } from "../../page-kit";
import { showSignIn } from "./sign-in";

const SETTINGS_PATH = "/account";

export function signInServicePages(ctx: ConsoleContext) {
  const { auth, db } = ctx;
  const nameOf = (id: string) => {
    const found = auth.providers.list.find((one) => one.id === id);
    if (!found) throw new BasetideError("not_found", "There is no such sign-in service");
    return found.name;
  };
  const visitors = new Elysia({ detail: { hide: true } })
    .use(anyone(ctx))
    .get("/sign-in/with/:provider", async ({ request, params, query }) => {
      const next = ownPath(query.next);
      nameOf(params.provider);
      const begun = await auth.providers.begin(request, params.provider, next);
      if (begun.ok) return leaveTo(begun.url, begun.cookies);
      return showSignIn(ctx, request, { next }, begun);
    })
    .get("/auth/callback/:provider", async ({ request, params }) => {
      const name = nameOf(params.provider);
      const done = await auth.providers.complete(request, params.provider);
      if (!done.ok && "isLink" in done && done.isLink)
        return finish(request, SETTINGS_PATH, { toast: { text: done.message, tone: "wrong" } });
      if (!done.ok) return showSignIn(ctx, request, { next: "/" }, done);
      if (done.path === undefined) return finish(request, SETTINGS_PATH, `${name} linked.`, done.cookies);
      return goTo(request, ownPath(done.path), done.cookies);
    });
  const users = new Elysia({ prefix: "/account/sign-in/services/:provider", detail: { hide: true } })
    .use(signedIn(ctx))
    // A GET, because the policy of our pages lets forms lead to no other site.
    .get("/link", async ({ request, params }) => {
      nameOf(params.provider);
      const begun = await auth.providers.beginLink(request, params.provider);
      if (begun.ok) return leaveTo(begun.url, begun.cookies);
      return finish(request, SETTINGS_PATH, { toast: { text: begun.message, tone: "wrong" } });
    })
    .post("/unlink", async ({ request, currentUser, params }) => {
      const name = nameOf(params.provider);
      await unlinkService(db, currentUser, params.provider);
      return finish(request, SETTINGS_PATH, `${name} unlinked.`);
    });
  return new Elysia({ detail: { hide: true } }).use(visitors).use(users);
}

/** Sends the browser to a provider, whose address comes from the configuration. */
function leaveTo(url: string, cookies: Headers): Response {
  const headers = new Headers({ ...securityHeaders, "cache-control": "no-store", location: url });
  for (const cookie of cookies.getSetCookie()) headers.append("set-cookie", cookie);
  return new Response(null, { status: 303, headers });
}
