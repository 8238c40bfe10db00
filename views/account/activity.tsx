/** The audit log of the account, newest first. */

import type { CurrentUser } from "../../core/control/accounts";
import { type AuditEntry, auditActions } from "../../core/control/audit";
import { ButtonLink, Card, Empty, Table } from "../components";
import { Ago } from "../components/ago";
import { AccountFrame } from "./frame";

interface ActivityProps {
  currentUser: CurrentUser;
  entries: AuditEntry[];
  /** Path of the page with older entries. */
  older: string | undefined;
  now: Date;
}

const kinds: Record<AuditEntry["actorKind"], string> = {
  user: "",
  token: "API token",
  operator: "operator",
  cli: "operator",
  system: "Basetide",
};

export function Activity({ currentUser, entries, older, now }: ActivityProps) {
  return (
    <AccountFrame currentUser={currentUser} tab="/account/activity">
      <Card id="activity" title="Activity">
        <p class="muted">Changes to this account, and who made them. Entries are kept for 400 days.</p>
        {entries.length === 0 ? (
          <Empty title="Nothing yet">
            Connected bases, changed settings, invitations and other changes are listed here.
          </Empty>
        ) : (
          <Table
            caption="Activity"
            head={[{ text: "When" }, { text: "Who" }, { text: "What" }, { text: "Details" }]}
          >
            {entries.map((entry) => (
              <tr key={entry.id}>
                <td class="nowrap">
                  <Ago at={entry.at} now={now} />
                </td>
                <th scope="row" class="wrap">
                  <Who entry={entry} />
                </th>
                <td class="wrap">{auditActions[entry.action] ?? entry.action}</td>
                <td class="wrap">
                  <bdi>{detailsOf(entry)}</bdi>
                </td>
              </tr>
            ))}
          </Table>
        )}
        {older ? (
          <ButtonLink href={older} kind="quiet">
            Older
          </ButtonLink>
        ) : null}
      </Card>
    </AccountFrame>
  );
}

/** The names of the service's operators are not shown to customers. */
function Who({ entry: { actorKind, actor } }: { entry: AuditEntry }) {
  const kind = kinds[actorKind];
  if (actorKind === "user") return <bdi>{actor}</bdi>;
  if (actorKind === "token") {
    return (
      <>
        {kind} <bdi>{actor}</bdi>
      </>
    );
  }
  return <>{kind}</>;
}

/** `name: Inventory, turbo: on`. */
function detailsOf({ details }: AuditEntry): string {
  return Object.entries(details)
    .filter(([name, value]) => value !== null && value !== undefined && !(name === "is_operator" && !value))
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${formatElapsed(value)}`)
    .join(", ");
}

function formatElapsed(value: unknown): string {
  return typeof value === "boolean" ? (value ? "on" : "off") : String(value);
}
