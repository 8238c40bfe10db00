/** Pages for sign-in, sign-out and forgotten passwords. */
import { Elysia } from "elysia";
import { validResetLinks } from "../../../../core/control/accounts";
import { withNext } from "../../../../views/auth/frame";
import { DeadResetLink, ForgotPassword, ResetPassword, SignIn } from "../../../../views/auth/sign-in";
import { SignInCode } from "../../../../views/auth/sign-in-code";
import { CheckMail } from "../../../../views/auth/sign-up";
import type { AuthFailure } from "../../auth/auth";
import { answer, anyone, type ConsoleContext, formSecret, formText, goTo, ownPath } from "../../page-kit";
import { byField, saying } from "./sign-up";

/** The messages for a visitor who was redirected here, by `?done=`. */
const done: Record<string, string> = {
  password: "Password changed. Sign in with the new password.",
  "signed-out": "You have been signed out.",
};

export function signInPages(ctx: ConsoleContext) {
  const { auth } = ctx;
  const isValid = validResetLinks(ctx.db);
  const page = (next: string) => ({ email: "", next, providers: auth.providers.list });
  return new Elysia({ detail: { hide: true } })
    .use(anyone(ctx))
    .get("/sign-in", ({ request, currentUser, query }) => {
      const next = ownPath(query.next);
      if (currentUser) return goTo(request, next);
      const email = query.email ?? "";
      return signInPage(request, { ...page(next), email, errors: {}, done: done[query.done ?? ""] });
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
      const { email, next } = form;
      return signInPage(request, { ...page(next), email, errors: byField(result) }, result);
    })
    .get("/sign-in/code", ({ request, query }) =>
      codePage(request, { next: ownPath(query.next), error: undefined }),
    )
    .post("/sign-in/code", async ({ request, body }) => {
      const next = ownPath(formText(body, "next"));
      const result = await auth.signInWithCode(request, formText(body, "code").replaceAll(" ", ""));
      if (result.ok) return goTo(request, next, result.cookies);
      return codePage(request, { next, error: result.message }, result);
    })
    .post("/sign-out", async ({ request }) => {
      const result = await auth.signOut(request);
      return goTo(request, "/sign-in?done=signed-out", result.ok ? result.cookies : undefined);
    })
    .get("/forgot-password", ({ request }) => forgotPage(request, { email: "", errors: {} }))
    .post("/forgot-password", async ({ request, body }) => {
      const email = formText(body, "email");
      const result = await auth.requestReset(request, email);
      if (!result.ok) return forgotPage(request, { email, errors: byField(result) }, result);
      return answer(
        request,
        { title: "Check your inbox", currentUser: null, width: "narrow" },
        <CheckMail email={email} isReset isMailConfigured={auth.deliversMail} />,
      );
    })
    .get("/reset-password", async ({ request, query }) => {
      const token = query.token ?? "";
      if (await isValid(token)) return resetPage(request, { token, errors: {} });
      const page = { ...frame("This link no longer works", undefined), status: 410 };
      return answer(request, page, <DeadResetLink />);
    })
    .post("/reset-password", async ({ request, body }) => {
      const token = formText(body, "token");
      const result = await auth.resetPassword(request, { token, password: formSecret(body, "password") });
      if (result.ok) return goTo(request, "/sign-in?done=password", result.cookies);
      return resetPage(request, { token, errors: byField(result) }, result);
    });
}

function signInPage(request: Request, props: Parameters<typeof SignIn>[0], failed?: AuthFailure) {
  return answer(request, frame("Sign in", failed), <SignIn {...props} />);
}

/** The page after a sign-in with another service has failed. */
export function showSignIn({ auth }: ConsoleContext, request: Request, next: string, failed: AuthFailure) {
  const props = { email: "", next, providers: auth.providers.list, errors: byField(failed) };
  return signInPage(request, props, failed);
}

function codePage(request: Request, props: Parameters<typeof SignInCode>[0], failed?: AuthFailure) {
  return answer(request, frame("Enter a code", failed), <SignInCode {...props} />);
}

function forgotPage(request: Request, props: Parameters<typeof ForgotPassword>[0], failed?: AuthFailure) {
  return answer(request, frame("Reset your password", failed), <ForgotPassword {...props} />);
}

function resetPage(request: Request, props: Parameters<typeof ResetPassword>[0], failed?: AuthFailure) {
  return answer(request, frame("Choose a new password", failed), <ResetPassword {...props} />);
}

function frame(title: string, failed: AuthFailure | undefined) {
  return { title, currentUser: null, width: "narrow", ...saying(failed) } as const;
}
