/** Pages for sign-in, sign-out and forgotten passwords. */
import { Elysia } from "elysia";
import { validResetLinks } from "../../../../core/control/accounts";
import { withNext } from "../../../../views/auth/frame";
import { DeadResetLink, ForgotPassword, ResetPassword, SignIn } from "../../../../views/auth/sign-in";
import { SignInCode } from "../../../../views/auth/sign-in-code";
import { CheckMail } from "../../../../views/auth/sign-up";
import type { AuthFailure } from "../../auth/auth";
import { answer, anyone, type ConsoleContext, formSecret, formText, goTo, ownPath } from "../../page-kit";
import { byField, visitorPage } from "./sign-up";

/** The messages for a visitor who was redirected here, by `?done=`. */
const done: Record<string, string> = {
  password: "Password changed. Sign in with the new password.",
  "signed-out": "You have been signed out.",
};

export function signInPages(ctx: ConsoleContext) {
  const { auth } = ctx;
  const isValid = validResetLinks(ctx.db);
  const resetPage = (request: Request, token: string, failed?: AuthFailure) => {
    const errors = failed ? byField(failed) : {};
    const view = <ResetPassword token={token} errors={errors} />;
    return visitorPage(request, "Choose a new password", view, failed);
  };
  const forgotPage = (request: Request, email: string, failed?: AuthFailure) => {
    const view = <ForgotPassword email={email} errors={failed ? byField(failed) : {}} />;
    return visitorPage(request, "Reset your password", view, failed);
  };
  return new Elysia({ detail: { hide: true } })
    .use(anyone(ctx))
    .get("/sign-in", ({ request, currentUser, query }) => {
      const next = ownPath(query.next);
      if (currentUser) return goTo(request, next);
      const props = { email: query.email ?? "", next, providers: auth.providers.list, errors: {} };
      return visitorPage(request, "Sign in", <SignIn {...props} done={done[query.done ?? ""]} />);
    })
    .post("/sign-in", async ({ request, body }) => {
      const form = {
        email: formText(body, "email"),
        password: formSecret(body, "password"),
        next: ownPath(formText(body, "next")),
      };
      const result = await auth.signIn(request, form);
      if (result.ok && result.needsCode)
        return goTo(request, withNext("/sign-in/code", form.next), result.cookies);
      if (result.ok) return goTo(request, form.next, result.cookies);
      return showSignIn(ctx, request, form, result);
    })
    .get("/sign-in/code", ({ request, query }) =>
      visitorPage(request, "Enter a code", <SignInCode next={ownPath(query.next)} error={undefined} />),
    )
    .post("/sign-in/code", async ({ request, body }) => {
      const next = ownPath(formText(body, "next"));
      const result = await auth.signInWithCode(request, formText(body, "code").replaceAll(" ", ""));
      if (result.ok) return goTo(request, next, result.cookies);
      return visitorPage(request, "Enter a code", <SignInCode next={next} error={result.message} />, result);
    })
    .post("/sign-out", async ({ request }) => {
      const result = await auth.signOut(request);
      return goTo(request, "/sign-in?done=signed-out", result.ok ? result.cookies : undefined);
    })
    .get("/forgot-password", ({ request }) => forgotPage(request, ""))
    .post("/forgot-password", async ({ request, body }) => {
      const email = formText(body, "email");
      const result = await auth.requestReset(request, email);
      if (!result.ok) return forgotPage(request, email, result);
      const view = <CheckMail email={email} isReset isMailConfigured={auth.deliversMail} />;
      return visitorPage(request, "Check your inbox", view);
    })
    .get("/reset-password", async ({ request, query }) => {
      const token = query.token ?? "";
      if (await isValid(token)) return resetPage(request, token);
      const page = { title: "This link no longer works", currentUser: null, width: "narrow" } as const;
      return answer(request, { ...page, status: 410 }, <DeadResetLink />);
    })
    .post("/reset-password", async ({ request, body }) => {
      const token = formText(body, "token");
      const result = await auth.resetPassword(request, { token, password: formSecret(body, "password") });
      if (result.ok) return goTo(request, "/sign-in?done=password", result.cookies);
      return resetPage(request, token, result);
    });
}

/** The page after a sign-in, also one with another service, has failed. */
export function showSignIn(
  { auth }: ConsoleContext,
  request: Request,
  { email = "", next }: { email?: string; next: string },
  failed: AuthFailure,
) {
  const props = { email, next, providers: auth.providers.list, errors: byField(failed) };
  return visitorPage(request, "Sign in", <SignIn {...props} />, failed);
}
