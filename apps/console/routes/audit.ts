/** API route of the account's audit log. */
import { Elysia } from "elysia";
import { listChanges } from "../../../core/control/audit";
import type { ManagementContext } from "../../../core/control/bases";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";

const DEFAULT_ENTRIES = 100;

export function auditRoutes({ db }: Pick<ManagementContext, "db">) {
  return new Elysia({ prefix: "/api/v1/audit", tags: ["Account"] }).use(bearerAuth(db)).get(
    "",
    async ({ account, query }) => {
      const { before, limit = DEFAULT_ENTRIES } = query;
      const entries = await listChanges(db, { accountId: account.id, before, limit });
      return entries.map(({ id, at, actorKind, actor, action, subject, details }) => ({
        id,
        at: at.toISOString(),
        // The name of the service's operator is not shown to accounts.
        actor: { kind: actorKind, name: actorKind === "user" || actorKind === "token" ? actor : null },
        action,
        subject,
        details,
      }));
    },
    {
      query: schemas.auditQuery,
      response: { 200: schemas.auditEntries },
      detail: {
        summary: "Audit log, newest first",
        description:
          "Changes made in the console, through the API or by the operator. Entries are kept for 400 days.",
      },
    },
  );
}
