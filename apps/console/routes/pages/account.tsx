/** Pages about the current user: password, sessions, and the choice of the account. */
import { Elysia } from "elysia";
import {
  type CurrentUser,
  hasTwoFactor,
  linkedServices,
  listSessions,
  revokeOtherSessions,
  revokeSession,
  switchAccount,
} from "../../../../core/control/accounts";
import { SignInSettings, type SignInSettingsProps } from "../../../../views/account/sign-in";
import {
  type ConsoleContext,
  finish,
  formSecret,
  formText,
  goTo,
  type PageCall,
  signedIn,
} from "../../page-kit";
import { httpStatusOf } from "./sign-up";

export function accountPages(ctx: ConsoleContext) {
  const { auth, db } = ctx;
  const services = async ({ userId }: CurrentUser) => {
    if (auth.providers.list.length === 0) return [];
    const linked = await linkedServices(db, userId);
    return auth.providers.list.map((one) => ({ ...one, isLinked: linked.includes(one.id) }));
  };
  const show = async (
    { page, currentUser }: PageCall,
    errors: SignInSettingsProps["errors"] = {},
    status?: number,
  ) =>
    page(
      { title: "Account", active: "settings", status },
      <SignInSettings
        currentUser={currentUser}
        sessions={await listSessions(db, currentUser.userId)}
        services={await services(currentUser)}
        hasTwoFactor={await hasTwoFactor(db, currentUser.userId)}
        now={new Date()}
        errors={errors}
      />,
    );
  return new Elysia({ prefix: "/account", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", (call) => show(call))
    .post("/password", async (call) => {
      const { request, currentUser, body } = call;
      const result = await auth.changePassword(request, currentUser, {
        current: formSecret(body, "current"),
        password: formSecret(body, "password"),
      });
      if (result.ok) {
        const text = "Password changed. You have been signed out on all other devices.";
        return finish(request, "/account", text, result.cookies);
      }
      const field = ({ wrong_password: "current", bad_password: "password" } as const)[
        result.reason as string
      ];
      return show(call, { [field ?? "form"]: result.message }, httpStatusOf(result.reason));
    })
    .post("/sessions/revoke-others", async ({ request, currentUser }) => {
      await revokeOtherSessions(db, currentUser);
      return finish(request, "/account", "You have been signed out on all other devices.");
    })
    .post("/sessions/:id/revoke", async ({ request, currentUser, params }) => {
      await revokeSession(db, currentUser, params.id);
      return finish(request, "/account", "Session signed out.");
    })
    .post("/switch", async ({ request, currentUser, body }) => {
      await switchAccount(db, currentUser, formText(body, "account"));
      return goTo(request, "/bases");
    });
}
