/** SQL users of a database, each with its role, its creator and its last login. */
import type { SqlUser } from "../../core/control/placement";
import { ButtonLink, DialogLink, Table } from "../components";
import { Ago } from "../components/ago";

/** @param props.path the base's page, for those who may change its users; without it, the table only informs */
export function SqlUserTable({ path, users, now }: { path?: string; users: SqlUser[]; now: Date }) {
  return (
    <Table
      caption="SQL users"
      head={[
        { text: "Name" },
        { text: "User" },
        { text: "Created" },
        { text: "Last seen" },
        ...(path ? [{ text: "Actions", isHidden: true }] : []),
      ]}
    >
      {users.map((user) => (
        <tr key={user.id}>
          <th scope="row" class="wrap">
            <bdi>{user.name}</bdi>
          </th>
          <td class="nowrap">
            <code>{user.role}</code>
          </td>
          <td class="wrap">
            <bdi>{user.createdBy}</bdi>, <Ago at={user.createdAt} now={now} />
          </td>
          <td class="nowrap">
            {user.lastSeenAt ? <Ago at={user.lastSeenAt} now={now} /> : <span class="muted">never</span>}
          </td>
          {path && (
            <td>
              <div class="actions">
                <ButtonLink kind="quiet" isSmall href={`${path}/connect?user=${user.id}`}>
                  Connect<span class="visually-hidden"> as {user.name}</span>
                </ButtonLink>
                <DialogLink kind="quiet" isSmall href={`${path}/sql-users/${user.id}/rotate`}>
                  Rotate<span class="visually-hidden"> the password of {user.name}</span>
                </DialogLink>
                <DialogLink kind="quiet" isSmall href={`${path}/sql-users/${user.id}/revoke`}>
                  Revoke<span class="visually-hidden"> {user.name}</span>
                </DialogLink>
              </div>
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}
