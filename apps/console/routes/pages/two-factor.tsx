/** The page of the user's second factor. */
import { Elysia } from "elysia";
import { hasTwoFactor } from "../../../../core/control/accounts";
import { TwoFactorPage, type TwoFactorPageProps } from "../../../../views/account/two-factor";
import type { AuthFailure } from "../../auth/auth";
import {
  type ConsoleContext,
  finish,
  formSecret,
  formText,
  onceOf,
  type PageCall,
  signedIn,
} from "../../page-kit";
import { httpStatusOf } from "./sign-up";

const TWO_FACTOR_PATH = "/account/sign-in/two-factor";

type Shown = Partial<Pick<TwoFactorPageProps, "setup" | "codes" | "errors">>;

export function twoFactorPages(ctx: ConsoleContext) {
  const { auth, db } = ctx;
  const show = async ({ page, currentUser }: PageCall, shown: Shown, failed?: AuthFailure) =>
    page(
      { title: "Two-factor authentication", active: "settings", status: httpStatusOf(failed?.reason) },
      <TwoFactorPage isOn={await hasTwoFactor(db, currentUser.userId)} errors={{}} {...shown} />,
    );
  return new Elysia({ prefix: TWO_FACTOR_PATH, detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", (call) => {
      const { uri, codes: left } = onceOf(call.request);
      const codes = left?.split(" ") ?? [];
      return show(call, uri ? { setup: { uri, codes } } : { codes });
    })
    .post("", async (call) => {
      const { request, currentUser, body } = call;
      const made = await auth.twoFactor.enable(request, currentUser, formSecret(body, "password"));
      if (!made.ok) return show(call, { errors: { password: made.message } }, made);
      return finish(request, TWO_FACTOR_PATH, { once: { uri: made.uri ?? "", codes: made.codes.join(" ") } });
    })
    .post("/confirm", async (call) => {
      const { request, currentUser, body } = call;
      const setup = { uri: formText(body, "uri"), codes: formText(body, "codes").split(" ") };
      const done = await auth.twoFactor.confirm(request, currentUser, codeIn(body));
      if (done.ok) return finish(request, TWO_FACTOR_PATH, "Two-factor authentication is on.", done.cookies);
      return show(call, { setup, errors: { code: done.message } }, done);
    })
    .post("/codes", async (call) => {
      const { request, currentUser, body } = call;
      const made = await auth.twoFactor.newCodes(request, currentUser, proofIn(body));
      if (!made.ok) return show(call, { errors: { codes: proofErrors(made) } }, made);
      return finish(request, TWO_FACTOR_PATH, { once: { codes: made.codes.join(" ") } });
    })
    .post("/disable", async (call) => {
      const { request, currentUser, body } = call;
      const done = await auth.twoFactor.disable(request, currentUser, proofIn(body));
      if (!done.ok) return show(call, { errors: { disable: proofErrors(done) } }, done);
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
