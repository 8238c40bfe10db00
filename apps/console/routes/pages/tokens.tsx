/** The page of the account's API tokens. */
import { Elysia } from "elysia";
import {
  actorOf,
  type CurrentUser,
  createToken,
  listTokens,
  revokeToken,
} from "../../../../core/control/accounts";
import { Tokens, type TokensProps } from "../../../../views/account/tokens";
import { mails } from "../../auth/mails";
import { answer, type ConsoleContext, finish, onceOf, signedIn } from "../../page-kit";
import { readTokenForm, type TokenForm } from "../../token-form";

type Shown = Partial<Pick<TokensProps, "form" | "errors" | "token">>;

/** A new token can read, and expires, unless the user chooses otherwise. */
const EMPTY: TokenForm = { name: "", scopes: ["read"], expires: "90" };

export function tokenPages(ctx: ConsoleContext) {
  const { auth, config, db } = ctx;
  const show = async (request: Request, currentUser: CurrentUser, props: Shown, status = 200) => {
    const tokens = await listTokens(db, currentUser.account.id);
    const { consoleUrl } = config;
    return answer(
      request,
      { title: "API tokens", currentUser, active: "api", status },
      <Tokens {...{ currentUser, tokens, consoleUrl, now: new Date(), form: EMPTY, errors: {}, ...props }} />,
    );
  };
  return new Elysia({ prefix: "/account/tokens", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", ({ request, currentUser }) => show(request, currentUser, { token: onceOf(request).token }))
    .post("", async ({ request, currentUser, body }) => {
      const { form, errors, expiresInDays } = readTokenForm(body);
      if (Object.keys(errors).length > 0) return show(request, currentUser, { form, errors }, 422);
      const { name, scopes } = form;
      const by = { actor: actorOf(currentUser), userId: currentUser.userId };
      const token = await createToken(db, currentUser.account.id, name, { ...by, scopes, expiresInDays });
      auth.notify(
        mails(config.consoleUrl).newToken(currentUser.account.email, name, currentUser.email),
        "token_notice",
      );
      return finish(request, "/account/tokens", { once: { token } });
    })
    .post("/:id/revoke", async ({ request, currentUser, params }) => {
      await revokeToken(db, currentUser.account.id, params.id, actorOf(currentUser));
      return finish(request, "/account/tokens", "Token revoked. It no longer works.");
    });
}
