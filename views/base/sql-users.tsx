/**
 * The SQL users of a base's database: a table, and the form for a new one. For a database that customers host, the
 * statements that create one there.
 */

import type { Base } from "../../core/control/bases";
import type { SqlUser } from "../../core/control/placement";
import { quoteIdent } from "../../core/replica";
import { Button, Card, Empty, Field, Form, FormPanel, ProgramText } from "../components";
import { counted } from "../format";
import { SqlUserTable } from "./sql-user-table";

interface SqlUsersProps {
  base: Base;
  /** Undefined: customers host the database. */
  users: SqlUser[] | undefined;
  databaseName: string;
  now: Date;
  /** What was typed for a new user, and what is wrong with it. */
  name: string;
  writes: string;
  error: string | undefined;
  /** In a database that customers host: whether it has a reading URL, and what is wrong with the one that was entered. */
  readingUrl: { isSet: boolean; error: string | undefined };
}

export function SqlUsers({ base, users, databaseName, now, name, writes, error, readingUrl }: SqlUsersProps) {
  if (!users) {
    return (
      <>
        <ReadingUrl base={base} {...readingUrl} />
        <OwnUsers schema={base.database.schema} database={databaseName} />
      </>
    );
  }
  return (
    <Card id="sql-users" title="SQL users">
      <FormPanel
        id="new-sql-user"
        action={`/bases/${base.id}/sql-users`}
        button="New SQL user"
        isOpen={error !== undefined}
      >
        <Form action={`/bases/${base.id}/sql-users`} class="stack rows">
          <Field
            label="Name"
            name="name"
            value={name}
            error={error}
            hint="What or who it is for, such as “Metabase” or “Lina”."
            maxLength={60}
            required
          />
          {base.settings.sqlWrites ? (
            <Field
              label="Tables that it may write"
              name="writes"
              value={writes}
              hint={`Names in SQL, separated by commas, such as “tasks, people”. Airtable gets what it writes ${base.settings.sqlWritesQueued ? "after" : "at"} the end of a transaction.`}
              maxLength={5000}
            />
          ) : null}
          <Button>Create SQL user</Button>
        </Form>
      </FormPanel>
      <p class="muted">
        Give each program or person a user of their own. All of them see the same tables, and you can rotate
        or revoke one without the others. <a href="/docs/sql#sql-users">Rights and limits</a>
      </p>
      {users.length === 0 ? (
        <Empty title="No SQL users yet">The credentials above belong to the database's own role.</Empty>
      ) : (
        <SqlUserTable path={`/bases/${base.id}`} users={users} writesTo={writtenIn(base)} now={now} />
      )}
    </Card>
  );
}

/** Returns what a user may write, for people; undefined while the setting is off. */
function writtenIn({ id, settings }: Base): ((user: SqlUser) => string) | undefined {
  if (!settings.sqlWrites) return undefined;
  return ({ writes: { [id]: writes } }) => {
    if (!writes) return "nothing";
    return `${counted(writes.tables.length, "table")}${writes.mode === "at_once" ? ", at once" : ""}`;
  };
}

/** The URL with which members read the database in the console. */
function ReadingUrl({ base, isSet, error }: { base: Base } & SqlUsersProps["readingUrl"]) {
  const path = `/bases/${base.id}/connect/reading-url`;
  return (
    <Card id="reading-url" title="Reading in the console">
      <FormPanel id="new-reading-url" action={path} button="Set reading URL" isOpen={error !== undefined}>
        <Form action={path} class="stack rows">
          <Field
            label="Reading URL"
            name="url"
            value=""
            error={error}
            hint="A URL of the same database. Create its role with the statements below; it may change nothing."
            placeholder="postgres://reporting:password@db.example.com:5432/app?sslmode=require"
            maxLength={2000}
            spellcheck={false}
            required
          />
          <Button>Save</Button>
        </Form>
      </FormPanel>
      <p class="muted">
        {isSet
          ? "The data browser, the SQL editor and downloads use the reading URL: members read what its role may read."
          : "The role in your URL may do more than read this base, so only owners and editors use the data browser, the SQL editor and downloads. Give a second URL, whose role can only read, and viewers can, too."}
      </p>
      {isSet ? (
        <Form action={`${path}/remove`}>
          <Button>Remove reading URL</Button>
        </Form>
      ) : null}
    </Card>
  );
}

/** Basetide has only the one role there that the customer gave it. */
function OwnUsers({ schema, database }: { schema: string; database: string }) {
  const [inSchema, inDatabase] = [quoteIdent(schema), quoteIdent(database)];
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
