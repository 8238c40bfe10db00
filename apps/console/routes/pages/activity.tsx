/** The page of the account's audit log. */
import { Elysia } from "elysia";
import { listChanges } from "../../../../core/control/audit";
import { Activity } from "../../../../views/account/activity";
import { answer, type ConsoleContext, formText, signedIn } from "../../page-kit";

const PAGE_SIZE = 50;

export function activityPages(ctx: ConsoleContext) {
  return new Elysia({ prefix: "/account/activity", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", async ({ request, currentUser, account, query }) => {
      const before = formText(query, "before") || undefined;
      const found = await listChanges(ctx.db, { accountId: account.id, before, limit: PAGE_SIZE + 1 });
      const entries = found.slice(0, PAGE_SIZE);
      const older = found.length > PAGE_SIZE ? `/account/activity?before=${entries.at(-1)!.id}` : undefined;
      return answer(
        request,
        { title: "Activity", currentUser, active: "members" },
        <Activity currentUser={currentUser} entries={entries} older={older} now={new Date()} />,
      );
    });
}
