/** Pages about the members of the account, and the one that an invitation's link opens. */
import { Elysia } from "elysia";
import {
  acceptInvitation,
  findInvitation,
  inviteMember,
  listInvitations,
  listMembers,
  removeMember,
  type Viewer,
  withdrawInvitation,
} from "../../../../core/control";
import { BasetideError, isBasetideError } from "../../../../core/errors";
import { Members, type MembersProps } from "../../../../views/account/members";
import { InvitationView } from "../../../../views/auth/invitation";
import { mails } from "../../auth/mails";
import { answer, anyone, type ConsoleContext, formText, goTo, signedIn } from "../../pages";

const done: Record<string, string> = {
  invited: "The invitation is on its way.",
  removed: "They are no member any more.",
  withdrawn: "The invitation is withdrawn: its link opens nothing.",
};

type Shown = Partial<Pick<MembersProps, "email" | "errors" | "done" | "link">>;

export function memberPages(ctx: ConsoleContext) {
  const { auth, config, db } = ctx;
  const show = async (request: Request, viewer: Viewer, props: Shown, status = 200) => {
    const [members, invitations] = await Promise.all([
      listMembers(db, viewer.account.id),
      listInvitations(db, viewer.account.id),
    ]);
    return answer(
      request,
      { title: "Members", viewer, active: "account", status },
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
      try {
        const token = await inviteMember(db, viewer, email);
        auth.sendLater(mails(config.consoleUrl).invitation(email, viewer.account.email, token));
        if (auth.deliversMail) return goTo(request, "/account/members?done=invited");
        return show(request, viewer, { link: `${config.consoleUrl}/invitation?token=${token}` });
      } catch (error) {
        if (!isBasetideError(error) || error.code === "forbidden") throw error;
        return show(request, viewer, { email, errors: { email: error.message } }, 422);
      }
    })
    .post("/account/members/:id/remove", async ({ request, viewer, params }) => {
      await removeMember(db, viewer, params.id);
      return goTo(request, params.id === viewer.userId ? "/bases" : "/account/members?done=removed");
    })
    .post("/account/invitations/:id/withdraw", async ({ request, viewer, params }) => {
      await withdrawInvitation(db, viewer, params.id);
      return goTo(request, "/account/members?done=withdrawn");
    })
    .post("/invitation", async ({ request, viewer, body }) => {
      await acceptInvitation(db, viewer, formText(body, "token"));
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
