/** The page of the account's API tokens. */
import { Elysia } from "elysia";
import {
  actorOf,
  createToken,
  listTokens,
  revokeToken,
  type Viewer,
} from "../../../../core/control/accounts";
import { Tokens, type TokensProps } from "../../../../views/account/tokens";
import { mails } from "../../auth/mails";
import { answer, type ConsoleContext, formText, goTo, signedIn } from "../../page-kit";

const MAX_NAME_LENGTH = 100;

type Shown = Partial<Pick<TokensProps, "name" | "errors" | "token" | "done">>;

export function tokenPages(ctx: ConsoleContext) {
  const { auth, config, db } = ctx;
  const show = async (request: Request, viewer: Viewer, props: Shown, status = 200) => {
    const tokens = await listTokens(db, viewer.account.id);
    const { consoleUrl } = config;
    return answer(
      request,
      { title: "API tokens", viewer, active: "account", status },
      <Tokens {...{ viewer, tokens, consoleUrl, now: new Date(), name: "", errors: {}, ...props }} />,
    );
  };
  return new Elysia({ prefix: "/account/tokens", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", ({ request, viewer, query }) =>
      show(request, viewer, query.done === "revoked" ? { done: "The token opens nothing any more." } : {}),
    )
    .post("", async ({ request, viewer, body }) => {
      const name = formText(body, "name");
      if (name === "" || name.length > MAX_NAME_LENGTH) {
        const error = `A name has 1 to ${MAX_NAME_LENGTH} characters.`;
        return show(request, viewer, { name, errors: { name: error } }, 422);
      }
      // Shown in the answer itself, and nowhere again: there is no address to come back to.
      const by = { actor: actorOf(viewer), userId: viewer.userId };
      const token = await createToken(db, viewer.account.id, name, by);
      auth.notify(
        mails(config.consoleUrl).newToken(viewer.account.email, name, viewer.email),
        "token_notice",
      );
      return show(request, viewer, { token });
    })
    .post("/:id/revoke", async ({ request, viewer, params }) => {
      await revokeToken(db, viewer.account.id, params.id, actorOf(viewer));
      return goTo(request, "/account/tokens?done=revoked");
    });
}
