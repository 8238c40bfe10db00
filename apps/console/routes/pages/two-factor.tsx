/** The page of the user's second factor. */
import { Elysia } from "elysia";
import { type CurrentUser, hasTwoFactor } from "../../../../core/control/accounts";
import { TwoFactorPage, type TwoFactorPageProps } from "../../../../views/account/two-factor";
import type { AuthFailure } from "../../auth/auth";
import { answer, type ConsoleContext, finish, formSecret, formText, onceOf, signedIn } from "../../page-kit";
import { httpStatusOf } from "./sign-up";

const TWO_FACTOR_PATH = "/account/sign-in/two-factor";

type Shown = Partial<Pick<TwoFactorPageProps, "setup" | "codes" | "errors">>;

export function twoFactorPages(ctx: ConsoleContext) {
  const { auth, db } = ctx;
  const show = async (request: Request, currentUser: CurrentUser, shown: Shown, failed?: AuthFailure) =>
    answer(
      request,
      {
        title: "Two-factor authentication",
        currentUser,
        active: "settings",
        status: httpStatusOf(failed?.reason),
      },
      <TwoFactorPage isOn={await hasTwoFactor(db, currentUser.userId)} errors={{}} {...shown} />,
    );
  return new Elysia({ prefix: TWO_FACTOR_PATH, detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", ({ request, currentUser }) => {
      const { uri, codes } = onceOf(request);
      const all = codes?.split(" ") ?? [];
      if (uri) return show(request, currentUser, { setup: { uri, codes: all } });
      return show(request, currentUser, { codes: all });
    })
    .post("", async ({ request, currentUser, body }) => {
      const made = await auth.twoFactor.enable(request, currentUser, formSecret(body, "password"));
      if (!made.ok) return show(request, currentUser, { errors: { password: made.message } }, made);
      return finish(request, TWO_FACTOR_PATH, { once: { uri: made.uri ?? "", codes: made.codes.join(" ") } });
    })
    .post("/confirm", async ({ request, currentUser, body }) => {
      const setup = { uri: formText(body, "uri"), codes: formText(body, "codes").split(" ") };
      const done = await auth.twoFactor.confirm(request, currentUser, codeIn(body));
      if (done.ok) return finish(request, TWO_FACTOR_PATH, "Two-factor authentication is on.", done.cookies);
      return show(request, currentUser, { setup, errors: { code: done.message } }, done);
    })
    .post("/codes", async ({ request, currentUser, body }) => {
      const made = await auth.twoFactor.newCodes(request, currentUser, proofIn(body));
      if (!made.ok) return show(request, currentUser, { errors: { codes: proofErrors(made) } }, made);
      return finish(request, TWO_FACTOR_PATH, { once: { codes: made.codes.join(" ") } });
    })
    .post("/disable", async ({ request, currentUser, body }) => {
      const done = await auth.twoFactor.disable(request, currentUser, proofIn(body));
      if (!done.ok) return show(request, currentUser, { errors: { disable: proofErrors(done) } }, done);
      return finish(request, TWO_FACTOR_PATH, "Two-factor authentication is off.", done.cookies);
    });
}

function codeIn(body: unknown): string {
  return formText(body, "code").replaceAll(" ", "");
}

function proofIn(body: unknown) {
  return { password: formSecret(body, "password"), code: codeIn(body) };
}

/** At the field that is wrong. */
function proofErrors({ reason, message }: AuthFailure) {
  return reason === "wrong_code" || reason === "code_expired" ? { code: message } : { password: message };
}
