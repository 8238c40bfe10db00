/** Pages for signing up and for confirming an address. */
import { Elysia } from "elysia";
import { ConfirmAddress } from "../../../../views/auth/sign-in";
import { CheckMail, type Errors, SignUp } from "../../../../views/auth/sign-up";
import type { AuthError, AuthFailure } from "../../auth/auth";
import { answer, anyone, type ConsoleContext, formSecret, formText, goTo, ownPath } from "../../page-kit";

/** A new user wants to connect a base. */
const FIRST_PAGE = "/new";

export function signUpPages(ctx: ConsoleContext) {
  const { auth } = ctx;
  return new Elysia({ detail: { hide: true } })
    .use(anyone(ctx))
    .get("/signup", ({ request, currentUser, query }) => {
      const next = ownPath(query.next);
      if (currentUser) return goTo(request, next);
      return signUpPage(request, { email: query.email ?? "", next, errors: {} });
    })
    .post("/signup", async ({ request, body }) => {
      const form = {
        email: formText(body, "email"),
        password: formSecret(body, "password"),
        next: ownPath(formText(body, "next")),
      };
      const after = form.next === "/" ? FIRST_PAGE : form.next;
      const result = await auth.signUp(request, { ...form, next: after });
      if (!result.ok) return signUpPage(request, { ...form, errors: byField(result) }, result);
      if (result.hasSession) return goTo(request, after, result.cookies);
      return checkMailPage(ctx, request, form.email);
    })
    .get("/verify-email", ({ request, currentUser, query }) => {
      const next = ownPath(query.next);
      return confirmPage(request, { token: query.token ?? "", next, error: undefined }, currentUser === null);
    })
    .post("/verify-email", async ({ request, currentUser, body }) => {
      const token = formText(body, "token");
      const next = ownPath(formText(body, "next"));
      const result = await auth.confirmAddress(request, token);
      if (!result.ok)
        return confirmPage(request, { token, next, error: result.message }, currentUser === null);
      // A link that is used a second time does not sign in; then the next page asks for the sign-in.
      return goTo(request, next, result.cookies);
    });
}

function signUpPage(request: Request, props: Parameters<typeof SignUp>[0], failed?: AuthFailure) {
  const page = { title: "Sign up", currentUser: null, width: "narrow", ...saying(failed) } as const;
  return answer(request, page, <SignUp {...props} />);
}

function confirmPage(request: Request, props: Parameters<typeof ConfirmAddress>[0], isSignedOut: boolean) {
  const page = { title: "Confirm your address", width: "narrow", status: props.error ? 422 : 200 } as const;
  return answer(
    request,
    { ...page, currentUser: isSignedOut ? null : undefined },
    <ConfirmAddress {...props} />,
  );
}

function checkMailPage({ auth }: ConsoleContext, request: Request, email: string) {
  return answer(
    request,
    { title: "Check your inbox", currentUser: null, width: "narrow" },
    <CheckMail email={email} isMailConfigured={auth.deliversMail} />,
  );
}

/** Puts the error of a call next to the field that it is about. */
export function byField(failed: AuthFailure): Errors<"email" | "password"> {
  const { reason, message } = failed;
  if (reason === "bad_address" || reason === "taken") return { email: message };
  if (reason === "bad_password") return { password: message };
  return { form: message };
}

/** The status of the page with the error, and when to try again. */
export function saying(failed: AuthFailure | undefined) {
  const seconds = failed?.retryAfterSeconds;
  const headers: Record<string, string> = seconds === undefined ? {} : { "retry-after": String(seconds) };
  return { status: httpStatusOf(failed?.reason), headers };
}

export function httpStatusOf(problem: AuthError | undefined): number {
  return problem === undefined ? 200 : problem === "too_many" ? 429 : 422;
}
