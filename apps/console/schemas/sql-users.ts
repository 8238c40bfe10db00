/** Request and answer schemas of the API for SQL users. */
import { t } from "elysia";
import { credentials, idParams } from "./base";
import { named, nullable, strict, timestamp } from "./parts";

export const sqlUserParams = t.Object({
  ...idParams.properties,
  user: t.String({ maxLength: 100, description: "Id of the SQL user: squ_…" }),
});

const mode = t.UnionEnum(["at_commit", "at_once"], {
  description:
    "When Airtable gets what it writes: at the end of the transaction, or by each statement, which a rollback does not undo. With the base's setting `sql_writes_queued`, after the end of the transaction; `at_once` is a conflict",
});

export const sqlUser = named(
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
      t.String({
        format: "date-time",
        description:
          "When it was last connected, to the minute; a session of less than three seconds may be missed",
      }),
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

export const sqlUsers = t.Array(sqlUser);

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

export const newSqlUser = named(
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
);

export const sqlUserChange = named("SqlUserChange", t.Object({ writes }, strict), {
  writes: { mode: "at_commit", tables: ["tasks"] },
});

export const createdSqlUser = named("CreatedSqlUser", t.Object({ sql_user: sqlUser, credentials }));
