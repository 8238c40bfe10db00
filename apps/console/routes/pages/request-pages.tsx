/** The page where an account sends a request to the operator. */
import { Elysia } from "elysia";
import { type Account, actorOf } from "../../../../core/control/accounts";
import { createRequest, listDatabases, listRequests, requestKinds } from "../../../../core/control/placement";
import { BasetideError, httpStatus, isBasetideError } from "../../../../core/errors";
import { RequestsPage, type RequestsProps } from "../../../../views/requests";
import { answer, type ConsoleContext, finish, formText, signedIn } from "../../page-kit";

export function requestPages(ctx: ConsoleContext) {
  const { db } = ctx;

  async function propsFor(account: Account): Promise<RequestsProps> {
    const [requests, databases] = await Promise.all([
      listRequests(db, { accountId: account.id }),
      listDatabases(db, account.id),
    ]);
    const possible = databases.filter(({ clusterId, isWritable }) => clusterId !== null && !isWritable);
    return { requests, databases: possible, now: new Date() };
  }

  return new Elysia({ name: "request-pages", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/requests", async ({ request, currentUser, account }) =>
      answer(
        request,
        { title: "Requests", currentUser, active: "help" },
        <RequestsPage {...(await propsFor(account))} />,
      ),
    )
    .post("/requests", async ({ request, currentUser, account, body }) => {
      const typed = {
        kind: formText(body, "kind"),
        region: formText(body, "region"),
        database: formText(body, "database"),
        message: formText(body, "message"),
      };
      try {
        const kind = requestKinds.find((known) => known === typed.kind);
        if (!kind) throw new BasetideError("invalid_request", "Describe your request");
        const { region, database: databaseId, message } = typed;
        await createRequest(db, account.id, { kind, region, databaseId, message }, actorOf(currentUser));
      } catch (error) {
        if (!isBasetideError(error)) throw error;
        return answer(
          request,
          { title: "Requests", currentUser, active: "help", status: httpStatus[error.code] },
          <RequestsPage {...(await propsFor(account))} typed={typed} error={error.message} />,
        );
      }
      return finish(request, "/requests", "Request sent. The answer will appear here.");
    });
}
