/** The account's audit log in the API. */
import { listChanges } from "../../../core/control/audit";
import { ofAccount, resource } from "../resource-kit/resource";
import { auditEntries, auditQuery } from "../schemas/history";
import { LISTED } from "../schemas/parts";

export const auditResource = resource({ tag: "Account", scope: ofAccount }).all({
  api: "GET /api/v1/audit",
  summary: "Audit log, newest first",
  description:
    "Changes made in the console, through the API or by the operator. Entries are kept for 400 days.",
  query: auditQuery,
  answer: auditEntries,
  async run({ db }, account, { before, limit = LISTED }) {
    const entries = await listChanges(db, { accountId: account.id, before, limit });
    return entries.map(({ actorKind: kind, actor: name, ...entry }) => ({
      ...entry,
      // The name of the service's operator is not shown to accounts.
      actor: { kind, name: kind === "user" || kind === "token" ? name : null },
    }));
  },
});
