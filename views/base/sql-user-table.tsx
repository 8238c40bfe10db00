/** SQL users of a database, each with its role, its creator and its last login. */
import type { SqlUser } from "../../core/control/placement";
import { Ago, ButtonLink, DialogLink, Table } from "../components";

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
      rows={users}
      columns={(column) => [
        column({ text: "Name", isHead: true, class: "wrap" }, ({ name }) => <bdi>{name}</bdi>),
        column({ text: "User", class: "nowrap" }, ({ role }) => <code>{role}</code>),
        column({ text: "Created", class: "wrap" }, (user) => (
          <>
            <bdi>{user.createdBy}</bdi>, <Ago at={user.createdAt} now={now} />
          </>
        )),
        column({ text: "Last seen", class: "nowrap" }, ({ lastSeenAt }) =>
          lastSeenAt ? <Ago at={lastSeenAt} now={now} /> : <span class="muted">never</span>,
        ),
        ...(writesTo ? [column({ text: "May write", class: "nowrap" }, writesTo)] : []),
        ...(path
          ? [column({ text: "Actions", isHidden: true }, (user) => <Actions path={path} user={user} />)]
          : []),
      ]}
    />
  );
}

function Actions({ path, user }: { path: string; user: SqlUser }) {
  return (
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
  );
}
