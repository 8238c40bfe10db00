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
import { answer, type ConsoleContext, finish, formText, onceOf, signedIn } from "../../page-kit";

const MAX_NAME_LENGTH = 100;

type Shown = Partial<Pick<TokensProps, "name" | "errors" | "token">>;

export function tokenPages(ctx: ConsoleContext) {
  const { auth, config, db } = ctx;
  const show = async (request: Request, currentUser: CurrentUser, props: Shown, status = 200) => {
    const tokens = await listTokens(db, currentUser.account.id);
    const { consoleUrl } = config;
    return answer(
      request,
      { title: "API tokens", currentUser, active: "api", status },
      <Tokens {...{ currentUser, tokens, consoleUrl, now: new Date(), name: "", errors: {}, ...props }} />,
    );
  };
  return new Elysia({ prefix: "/account/tokens", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", ({ request, currentUser }) => show(request, currentUser, { token: onceOf(request).token }))
    .post("", async ({ request, currentUser, body }) => {
      const name = formText(body, "name");
      if (name === "" || name.length > MAX_NAME_LENGTH) {
        const error = `The name must have 1 to ${MAX_NAME_LENGTH} characters.`;
        return show(request, currentUser, { name, errors: { name: error } }, 422);
      }
      const by = { actor: actorOf(currentUser), userId: currentUser.userId };
      const token = await createToken(db, currentUser.account.id, name, by);
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
