/** The SQL users of a base's database, each with credentials of its own, and what the database's own role needs. */
import { t } from "elysia";
import { allowWrites, type Base, createSqlUserOf, getBase, resolveWrites } from "../../../core/control/bases";
import {
  type Database,
  getDatabase,
  getSqlUser,
  listSqlUsers,
  removeReadingUrl,
  revokeSqlUser,
  rotateCredentials,
  rotateSqlUser,
  type SqlUser,
  setReadingUrl,
  showCredentials,
  showSqlUserCredentials,
} from "../../../core/control/placement";
import { onBase } from "../base-page";
import type { ConsoleContext } from "../page-kit";
import { type Asker, type Params, resource } from "../resource-kit/resource";
import { credentials, idParams } from "../schemas";
import { readingUrl } from "../schemas/connect";
import { named, nullable, oneOf, strict, timestamp, timestampOf } from "../schemas/parts";

const API = "/api/v1/bases/:id";
const PAGE = "/bases/:id/connect";

interface BaseDatabase {
  base: Base;
  database: Database;
}

async function databaseOf({ db }: ConsoleContext, { account }: Asker, { id }: Params): Promise<BaseDatabase> {
  const base = await getBase(db, id, account.id);
  return { base, database: await getDatabase(db, base.database.id) };
}

const connecting = onBase("connect");
const frame = {
  facts: ({ base }: BaseDatabase) => connecting.facts(base),
  frame: ({ base }: BaseDatabase, content: preact.VNode) => connecting.frame(base, content),
};

const mode = oneOf(["at_commit", "at_once"], {
  description:
    "When Airtable gets what it writes: at the end of the transaction, or by each statement, which a rollback does not undo. With the base's setting `sql_writes_queued`, after the end of the transaction; `at_once` is a conflict",
});

const sqlUser = named(
  "SqlUser",
  t.Object({
    id: t.String(),
    name: t.String(),
    user: t.String({ description: "The user of its credentials" }),
    created_by: t.String({
      description: "E-mail address of the user, or name of the token or operator, who created it",
    }),
    created_at: timestamp,
    last_seen_at: nullable(
      timestampOf(
        "When it was last connected, to the minute; a session of less than three seconds may be missed",
      ),
    ),
    writes: nullable(
      t.Object(
        { mode, tables: t.Array(t.String()) },
        {
          description: "What it may write to this base with SQL: Airtable's ids of the tables. Null: nothing",
        },
      ),
    ),
  }),
);

const shown = (base: Base, user: SqlUser) => ({
  ...user,
  user: user.role,
  writes: user.writes[base.id] ?? null,
});

const writes = t.Object(
  {
    mode: t.Optional(mode),
    tables: t.Optional(
      t.Array(t.String({ maxLength: 100 }), {
        maxItems: 1000,
        description: "Names in SQL, or ids, of tables; absent: all that there are; empty: none",
      }),
    ),
  },
  {
    ...strict,
    description:
      "What it may write with SQL, in the schema `write`. The base's setting `sql_writes` must be on",
  },
);

export const sqlUsersResource = resource({
  tag: "Credentials",
  params: t.Object({
    ...idParams.properties,
    user: t.String({ maxLength: 100, description: "Id of the SQL user: squ_…" }),
  }),
  scope: databaseOf,
  find: async ({ db }, scope, { user }) => ({
    ...scope,
    user: await getSqlUser(db, scope.database.id, user!),
  }),
  console: frame,
})
  .all({
    api: `GET ${API}/sql-users`,
    summary: "SQL users of the base's database",
    description: "All bases in one database share its users. The list has no passwords.",
    answer: t.Array(sqlUser),
    run: async ({ db }, { base, database }) =>
      (await listSqlUsers(db, database.id)).map((user) => shown(base, user)),
  })
  .all({
    api: `POST ${API}/sql-users`,
    summary: "Create a SQL user",
    description:
      "It reads what the database's own role reads, with a password of its own. Rejected (409) for a database that you host, on a server before Postgres 16, and beyond the maximum of users.",
    raises: ["already_exists", "conflict"],
    status: 201,
    body: named(
      "NewSqlUser",
      t.Object(
        {
          name: t.String({
            minLength: 1,
            maxLength: 60,
            description: "What or who it is for; unique in the database, ignoring case",
          }),
          writes: t.Optional(writes),
        },
        strict,
      ),
      { name: "Metabase" },
    ),
    answer: named("CreatedSqlUser", t.Object({ sql_user: sqlUser, credentials })),
    async run(ctx, { base, database }, body) {
      const user = await createSqlUserOf(ctx, base, body.name, body.writes);
      return { sqlUser: shown(base, user), credentials: await showSqlUserCredentials(ctx, database, user) };
    },
  })
  .one({
    api: `PATCH ${API}/sql-users/:user`,
    summary: "Change what a SQL user may write",
    description: "It holds at once, also for open sessions.",
    raises: ["conflict", "invalid_request"],
    body: named("SqlUserChange", t.Object({ writes }, strict), {
      writes: { mode: "at_commit", tables: ["tasks"] },
    }),
    answer: sqlUser,
    run: async (ctx, { base, user }, body) =>
      shown(base, await allowWrites(ctx, base, user, await resolveWrites(ctx, base, body.writes))),
  })
  .one({
    api: `GET ${API}/sql-users/:user/credentials`,
    summary: "How to connect as a SQL user",
    description: "The audit log records each request.",
    answer: credentials,
    run: (ctx, { database, user }) => showSqlUserCredentials(ctx, database, user),
  })
  .one({
    api: `POST ${API}/sql-users/:user/rotate`,
    summary: "Set a new password of a SQL user. The old password no longer works",
    description: "Open connections, and other users, are not affected.",
    answer: credentials,
    run: (ctx, { database, user }) => rotateSqlUser(ctx, database, user),
    form: {
      path: "/bases/:id/sql-users/:user/rotate",
      to: (_, { base, user }) => `/bases/${base.id}/connect?user=${user.id}`,
      done: (_, { user }) => `Password of “${user.name}” rotated. The old password no longer works.`,
      asks: ({ user }) => ({
        title: `Rotate the password of “${user.name}”?`,
        effect: (
          <p>The old password stops working at once. Open connections, and other users, are not affected.</p>
        ),
        button: "Rotate password",
        isDanger: true,
        back: `${PAGE}?user=:user`,
      }),
    },
  })
  .one({
    api: `DELETE ${API}/sql-users/:user`,
    summary: "Revoke a SQL user",
    description:
      "Its connections end, and it can no longer log in. What it created in a writable database stays, no longer runs, and belongs to a role without a login; the activity lists it.",
    gone: "Revoked",
    run: (ctx, { database, user }) => revokeSqlUser(ctx, database, user),
    form: {
      path: "/bases/:id/sql-users/:user/revoke",
      to: PAGE,
      done: (_, { user }) => `SQL user “${user.name}” revoked.`,
      asks: ({ database, user }) => ({
        title: `Revoke the SQL user “${user.name}”?`,
        effect: (
          <p>
            Its connections end, and it can no longer log in. This cannot be undone.
            {database.isWritable
              ? " What it created stays, but its functions, triggers and rules no longer run. The database's own role can read its tables; the activity lists everything."
              : ""}
          </p>
        ),
        button: "Revoke SQL user",
        isDanger: true,
        back: PAGE,
      }),
    },
  });

/** Of the database's own role. */
export const credentialsResource = resource({
  tag: "Credentials",
  params: idParams,
  scope: databaseOf,
  console: frame,
})
  .all({
    api: `GET ${API}/credentials`,
    summary: "How to connect with SQL",
    description: "The audit log records each request.",
    answer: credentials,
    run: (ctx, { database }) => showCredentials(ctx, database),
  })
  .all({
    api: `POST ${API}/credentials/rotate`,
    summary: "Set a new password. The old password no longer works",
    raises: ["conflict"],
    answer: credentials,
    run: (ctx, { database }) => rotateCredentials(ctx, database),
    form: {
      path: `${PAGE}/rotate`,
      to: PAGE,
      done: "Password rotated. The old password no longer works.",
    },
  })
  .all({
    api: `PUT ${API}/credentials/reading-url`,
    summary: "Set the URL with which members read a database that you host",
    description:
      "Its role must be able to read the bases and to change nothing. The SQL editor, the data browser and downloads use it; without it, viewers cannot.",
    raises: ["conflict", "destination_invalid"],
    gone: "Stored",
    body: readingUrl,
    run: (ctx, { database }, { url }) => setReadingUrl(ctx, database, url),
  })
  .all({
    api: `DELETE ${API}/credentials/reading-url`,
    summary: "Remove the reading URL",
    raises: ["conflict"],
    gone: "Removed",
    run: (ctx, { database }) => removeReadingUrl(ctx, database),
    form: { path: `${PAGE}/reading-url/remove`, to: PAGE, done: "Reading URL removed." },
  });
