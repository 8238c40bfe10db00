/** Pages about the members of the account, and the one that an invitation's link opens. */
import { Elysia } from "elysia";
import type { Viewer } from "../../../../core/control/accounts";
import {
  acceptInvitation,
  findInvitation,
  inviteMember,
  listInvitations,
  listMembers,
  removeMember,
  removerOf,
  withdrawInvitation,
} from "../../../../core/control/members";
import { BasetideError, isBasetideError } from "../../../../core/errors";
import { Members, type MembersProps } from "../../../../views/account/members";
import { RemoveMember } from "../../../../views/account/remove-member";
import { InvitationView } from "../../../../views/auth/invitation";
import { mails } from "../../auth/mails";
import { answer, anyone, type ConsoleContext, formText, goTo, signedIn } from "../../page-kit";

const done: Record<string, string> = {
  invited: "The invitation is on its way.",
  removed: "Member removed. Passwords, links and tokens that they saw still work.",
  withdrawn: "Invitation withdrawn. Its link no longer works.",
};

type Shown = Partial<Pick<MembersProps, "email" | "errors" | "done" | "link" | "removal">>;

export function memberPages(ctx: ConsoleContext) {
  const { auth, config, db } = ctx;
  const show = async (
    request: Request,
    viewer: Viewer,
    props: Shown,
    status = 200,
    headers: Record<string, string> = {},
  ) => {
    const [members, invitations] = await Promise.all([
      listMembers(db, viewer.account.id),
      listInvitations(db, viewer.account.id),
    ]);
    return answer(
      request,
      { title: "Members", viewer, active: "account", status, headers },
      <Members {...{ viewer, members, invitations, email: "", errors: {}, ...props }} />,
    );
  };
  return new Elysia({ detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/account/members", ({ request, viewer, query }) =>
      show(request, viewer, { done: done[query.done ?? ""] }),
    )
    .post("/account/members", async ({ request, viewer, body }) => {
      const email = formText(body, "email");
      const accountId = viewer.account.id;
      try {
        const { token, permit, ...invited } = await inviteMember(db, viewer, email, (to) =>
          auth.permit(request, { reason: "invitation", to, accountId }),
        );
        auth.sendLater(
          mails(config.consoleUrl).invitation(invited.email, viewer.account.email, token),
          permit,
        );
        if (auth.deliversMail) return goTo(request, "/account/members?done=invited");
        return show(request, viewer, { link: `${config.consoleUrl}/invitation?token=${token}` });
      } catch (error) {
        if (!isBasetideError(error) || error.code === "forbidden") throw error;
        const seconds = error.details.retryAfterSeconds;
        const headers: Record<string, string> =
          seconds === undefined ? {} : { "retry-after": String(seconds) };
        const status = error.code === "rate_limited" ? 429 : 422;
        return show(request, viewer, { email, errors: { email: error.message } }, status, headers);
      }
    })
    .get("/account/members/:id/remove", async ({ request, viewer, params }) => {
      const members = await listMembers(db, viewer.account.id);
      const member = members.find(({ userId, role }) => userId === params.id && role !== "owner");
      if (!member) throw new BasetideError("not_found", "There is no such member");
      if (viewer.account.role !== "owner" && member.userId !== viewer.userId) {
        throw new BasetideError("forbidden", "Only the account's owner may do that");
      }
      return answer(
        request,
        { title: "Remove a member", viewer, active: "account" },
        <RemoveMember viewer={viewer} member={member} />,
      );
    })
    .post("/account/members/:id/remove", async ({ request, viewer, params, body }) => {
      const options = {
        rotateCredentials: formText(body, "rotate_credentials") === "on",
        revokeAttachmentLinks: formText(body, "revoke_attachment_links") === "on",
        revokeTokens: formText(body, "revoke_tokens") === "on",
      };
      const removal = await removeMember(ctx, removerOf(viewer), params.id, options);
      if (params.id === viewer.userId) return goTo(request, "/bases");
      if (!Object.values(options).includes(true)) return goTo(request, "/account/members?done=removed");
      return show(request, viewer, { removal });
    })
    .post("/account/invitations/:id/withdraw", async ({ request, viewer, params }) => {
      await withdrawInvitation(db, viewer, params.id);
      return goTo(request, "/account/members?done=withdrawn");
    })
    .post("/invitation", async ({ request, viewer, body }) => {
      await acceptInvitation(db, viewer, formText(body, "token"));
      await auth.forgive(viewer.email);
      return goTo(request, "/bases");
    });
}

/** For everybody: who was invited may have no account yet. */
export function invitationPage(ctx: ConsoleContext) {
  return new Elysia({ detail: { hide: true } })
    .use(anyone(ctx))
    .get("/invitation", async ({ request, viewer, query }) => {
      const token = query.token ?? "";
      const invitation = await findInvitation(ctx.db, token);
      if (!invitation) throw new BasetideError("not_found", "This invitation has expired or was withdrawn");
      const { account, email } = invitation;
      return answer(
        request,
        { title: "You are invited", viewer, width: "narrow" },
        <InvitationView account={account} email={email} token={token} signedInAs={viewer?.email ?? null} />,
      );
    });
}
