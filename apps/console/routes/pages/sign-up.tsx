/** Pages for signing up and for confirming an address. */
import { Elysia } from "elysia";
import type { VNode } from "preact";
import type { CurrentUser } from "../../../../core/control/accounts";
import { ConfirmAddress } from "../../../../views/auth/sign-in";
import { CheckMail, type Errors, SignUp } from "../../../../views/auth/sign-up";
import type { AuthError, AuthFailure } from "../../auth/auth";
import { answer, anyone, type ConsoleContext, formSecret, formText, goTo, ownPath } from "../../page-kit";

/** A new user wants to connect a base. */
const FIRST_PAGE = "/new";

export function signUpPages(ctx: ConsoleContext) {
  const { auth } = ctx;
  const confirmPage = (
    request: Request,
    props: Parameters<typeof ConfirmAddress>[0],
    currentUser: CurrentUser | null,
  ) => {
    const status = props.error ? 422 : 200;
    const page = { title: "Confirm your address", width: "narrow", status } as const;
    // The bar of a visitor has links to sign in; a user's has none here.
    const shown = { ...page, currentUser: currentUser === null ? null : undefined };
    return answer(request, shown, <ConfirmAddress {...props} />);
  };
  return new Elysia({ detail: { hide: true } })
    .use(anyone(ctx))
    .get("/signup", ({ request, currentUser, query }) => {
      const next = ownPath(query.next);
      if (currentUser) return goTo(request, next);
      return visitorPage(request, "Sign up", <SignUp email={query.email ?? ""} next={next} errors={{}} />);
    })
    .post("/signup", async ({ request, body }) => {
      const form = {
        email: formText(body, "email"),
        password: formSecret(body, "password"),
        next: ownPath(formText(body, "next")),
      };
      const after = form.next === "/" ? FIRST_PAGE : form.next;
      const result = await auth.signUp(request, { ...form, next: after });
      if (!result.ok)
        return visitorPage(request, "Sign up", <SignUp {...form} errors={byField(result)} />, result);
      if (result.hasSession) return goTo(request, after, result.cookies);
      const view = <CheckMail email={form.email} isMailConfigured={auth.deliversMail} />;
      return visitorPage(request, "Check your inbox", view);
    })
    .get("/verify-email", ({ request, currentUser, query }) => {
      const next = ownPath(query.next);
      return confirmPage(request, { token: query.token ?? "", next, error: undefined }, currentUser);
    })
    .post("/verify-email", async ({ request, currentUser, body }) => {
      const token = formText(body, "token");
      const next = ownPath(formText(body, "next"));
      const result = await auth.confirmAddress(request, token);
      if (!result.ok) return confirmPage(request, { token, next, error: result.message }, currentUser);
      // A link that is used a second time does not sign in; then the next page asks for the sign-in.
      return goTo(request, next, result.cookies);
    });
}

/** Answers a visitor. @param failed why the form before was rejected, and when to try again */
export function visitorPage(request: Request, title: string, view: VNode, failed?: AuthFailure): Response {
  const seconds = failed?.retryAfterSeconds;
  const headers: Record<string, string> = seconds === undefined ? {} : { "retry-after": String(seconds) };
  const status = httpStatusOf(failed?.reason);
  return answer(request, { title, currentUser: null, width: "narrow", status, headers }, view);
}

/** Puts the error of a call next to the field that it is about. */
export function byField(failed: AuthFailure): Errors<"email" | "password"> {
  const { reason, message } = failed;
  if (reason === "bad_address" || reason === "taken") return { email: message };
  if (reason === "bad_password") return { password: message };
  return { form: message };
}

export function httpStatusOf(problem: AuthError | undefined): number {
  return problem === undefined ? 200 : problem === "too_many" ? 429 : 422;
}
