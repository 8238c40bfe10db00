/** Pages about the account's members, and the page that an invitation's link opens. */
import { Elysia } from "elysia";
import {
  acceptInvitation,
  changeRole,
  checkRole,
  inviteMember,
  linkedInvitations,
  listInvitations,
  listMembers,
  removeMember,
  removerOf,
  withdrawInvitation,
} from "../../../../core/control/members";
import { BasetideError, isBasetideError } from "../../../../core/errors";
import { allowLongAnswer } from "../../../../core/http";
import { Members, type MembersProps } from "../../../../views/account/members";
import { RemoveMember } from "../../../../views/account/remove-member";
import { InvitationView } from "../../../../views/auth/invitation";
import { mails } from "../../auth/mails";
import {
  answer,
  anyone,
  type ConsoleContext,
  finish,
  formText,
  goTo,
  onceOf,
  type PageCall,
  signedIn,
} from "../../page-kit";

type Shown = Partial<Pick<MembersProps, "email" | "role" | "errors" | "link" | "removal">>;

export function memberPages(ctx: ConsoleContext) {
  const { auth, config, db } = ctx;
  const show = async (
    { page, currentUser }: PageCall,
    props: Shown,
    status?: number,
    headers: Record<string, string> = {},
  ) => {
    const [members, invitations] = await Promise.all([
      listMembers(db, currentUser.account.id),
      listInvitations(db, currentUser.account.id),
    ]);
    return page(
      { title: "Members", active: "members", status, headers },
      <Members {...{ currentUser, members, invitations, email: "", role: "editor", errors: {}, ...props }} />,
    );
  };
  return new Elysia({ detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/account/members", (call) => show(call, { link: onceOf(call.request).link }))
    .post("/account/members", async (call) => {
      const { request, currentUser, body } = call;
      const email = formText(body, "email");
      const role = formText(body, "role") || "editor";
      const accountId = currentUser.account.id;
      try {
        const { token, permit, ...invited } = await inviteMember(
          db,
          currentUser,
          { address: email, role: checkRole(role) },
          (to) => auth.permit(request, { reason: "invitation", to, accountId }),
        );
        auth.sendLater(
          mails(config.consoleUrl).invitation(invited.email, currentUser.account.email, token),
          permit,
        );
        if (auth.deliversMail) return finish(request, "/account/members", "Invitation sent.");
        const link = `${config.consoleUrl}/invitation?token=${token}`;
        return finish(request, "/account/members", { once: { link } });
      } catch (error) {
        if (!isBasetideError(error) || error.code === "forbidden") throw error;
        const seconds = error.details.retryAfterSeconds;
        const headers: Record<string, string> =
          seconds === undefined ? {} : { "retry-after": String(seconds) };
        const status = error.code === "rate_limited" ? 429 : 422;
        return show(call, { email, role, errors: { email: error.message } }, status, headers);
      }
    })
    .post("/account/members/:id/role", async ({ request, account, by, params, body }) => {
      const { id: accountId, role } = account;
      await changeRole(db, { accountId, role, actor: by.actor }, params.id, formText(body, "role"));
      return finish(request, "/account/members", "Role changed.");
    })
    .get("/account/members/:id/remove", async ({ currentUser, page, params }) => {
      const members = await listMembers(db, currentUser.account.id);
      const member = members.find(({ userId, role }) => userId === params.id && role !== "owner");
      if (!member) throw new BasetideError("not_found", "This member does not exist");
      if (currentUser.account.role !== "owner" && member.userId !== currentUser.userId) {
        throw new BasetideError("forbidden", "Only the owner of the account may do this");
      }
      const view = <RemoveMember currentUser={currentUser} member={member} />;
      return page({ title: "Remove a member", active: "members" }, view);
    })
    .post("/account/members/:id/remove", async (call) => {
      const { request, currentUser, params, body } = call;
      const options = {
        rotateCredentials: formText(body, "rotate_credentials") === "on",
        revokeAttachmentLinks: formText(body, "revoke_attachment_links") === "on",
        revokeTokens: formText(body, "revoke_tokens") === "on",
      };
      // Of many databases, or of a server that does not answer.
      allowLongAnswer(request);
      const removal = await removeMember(ctx, removerOf(currentUser), params.id, options);
      if (params.id === currentUser.userId) return goTo(request, "/bases");
      const toast = { text: "Member removed. Passwords, links and tokens that they saw still work." };
      if (!Object.values(options).includes(true)) return finish(request, "/account/members", { toast });
      // In this answer, because no cookie holds the results of many databases. Sent again, it removes nobody.
      return show(call, { removal });
    })
    .post("/account/invitations/:id/withdraw", async ({ request, currentUser, params }) => {
      await withdrawInvitation(db, currentUser, params.id);
      return finish(request, "/account/members", "Invitation withdrawn. Its link no longer works.");
    })
    .post("/invitation", async ({ request, currentUser, body }) => {
      await acceptInvitation(db, currentUser, formText(body, "token"));
      await auth.forgive(currentUser.email);
      return goTo(request, "/bases");
    });
}

/** Open to everyone: an invited person may not have an account yet. */
export function invitationPage(ctx: ConsoleContext) {
  const find = linkedInvitations(ctx.db);
  return new Elysia({ detail: { hide: true } })
    .use(anyone(ctx))
    .get("/invitation", async ({ request, currentUser, query }) => {
      const token = query.token ?? "";
      const invitation = await find(token);
      if (!invitation) throw new BasetideError("not_found", "This invitation has expired or was withdrawn");
      const { account, email, role } = invitation;
      return answer(
        request,
        { title: "You have been invited", currentUser, width: "narrow" },
        <InvitationView
          account={account}
          email={email}
          role={role}
          token={token}
          signedInAs={currentUser?.email ?? null}
        />,
      );
    });
}
