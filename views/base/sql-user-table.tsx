/** SQL users of a database, each with its role, its creator and its last login. */
import type { SqlUser } from "../../core/control/placement";
import { ButtonLink, DialogLink, Table } from "../components";
import { Ago } from "../components/ago";

interface SqlUserTableProps {
  /** The base's page, for those who may change its users; without it, the table only informs. */
  path?: string;
  users: SqlUser[];
  /** What a user may write with SQL; undefined: no user may. */
  writesTo?: ((user: SqlUser) => string) | undefined;
  now: Date;
}

export function SqlUserTable({ path, users, writesTo, now }: SqlUserTableProps) {
  return (
    <Table
      caption="SQL users"
      head={[
        { text: "Name" },
        { text: "User" },
        { text: "Created" },
        { text: "Last seen" },
        ...(writesTo ? [{ text: "May write" }] : []),
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
          {writesTo && <td class="nowrap">{writesTo(user)}</td>}
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
