/**
 * The SQL users of a base's database: a table, and the form for a new one. For a database that customers host, the
 * statements that create one there.
 */
import type { Base } from "../../core/control/bases";
import type { SqlUser } from "../../core/control/placement";
import { Button, ButtonLink, Card, DialogLink, Empty, Field, FormPanel, Table } from "../components";
import { Ago } from "../components/ago";
import { ProgramText } from "../components/program";

interface SqlUsersProps {
  base: Base;
  /** Undefined: customers host the database. */
  users: SqlUser[] | undefined;
  databaseName: string;
  now: Date;
  /** What was typed for a new user, and what is wrong with it. */
  name: string;
  error: string | undefined;
}

export function SqlUsers({ base, users, databaseName, now, name, error }: SqlUsersProps) {
  if (!users) return <OwnUsers schema={base.database.schema} database={databaseName} />;
  return (
    <>
      <Card id="sql-users" title="SQL users">
        <p class="muted">
          Give each program or person a user of their own. All of them see the same tables, and you can rotate
          or revoke one without the others. <a href="/docs/sql#sql-users">Rights and limits</a>
        </p>
        {users.length === 0 ? (
          <Empty title="No SQL users yet">The credentials above belong to the database's own role.</Empty>
        ) : (
          <UserTable path={`/bases/${base.id}`} users={users} now={now} />
        )}
      </Card>
      <FormPanel id="new-sql-user" button="New SQL user" isOpen={error !== undefined}>
        <form method="post" action={`/bases/${base.id}/sql-users`} class="stack rows">
          <Field
            label="Name"
            name="name"
            value={name}
            error={error}
            hint="What or who it is for, such as “Metabase” or “Lina”."
            maxLength={60}
            autocomplete="off"
            required
          />
          <Button>Create SQL user</Button>
        </form>
      </FormPanel>
    </>
  );
}

function UserTable({ path, users, now }: { path: string; users: SqlUser[]; now: Date }) {
  return (
    <Table
      caption="SQL users"
      head={[
        { text: "Name" },
        { text: "User" },
        { text: "Created" },
        { text: "Last seen" },
        { text: "Actions", isHidden: true },
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
        </tr>
      ))}
    </Table>
  );
}

/** Basetide has only the one role there that the customer gave it. */
function OwnUsers({ schema, database }: { schema: string; database: string }) {
  const [inSchema, inDatabase] = [quoted(schema), quoted(database)];
  const statements = [
    "create role reporting login password '…';",
    `grant connect on database ${inDatabase} to reporting;`,
    `grant usage on schema ${inSchema} to reporting;`,
    `grant select on all tables in schema ${inSchema} to reporting;`,
    "-- As the role in Basetide's URL, for tables that are added later:",
    `alter default privileges in schema ${inSchema} grant select on tables to reporting;`,
  ];
  return (
    <Card id="sql-users" title="SQL users">
      <p class="muted">
        You host this database, so create a user for each program or person there. Basetide keeps their rights
        when it rebuilds a table.
      </p>
      <ProgramText id="own-sql-user" name="A user that reads this base" code={statements.join("\n")} />
    </Card>
  );
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
