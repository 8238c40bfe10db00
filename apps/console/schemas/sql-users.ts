/** Request and answer schemas of the API for SQL users. */
import { t } from "elysia";
import { credentials, idParams } from "./base";
import { named, nullable, strict, timestamp } from "./parts";

export const sqlUserParams = t.Object({
  ...idParams.properties,
  user: t.String({ maxLength: 100, description: "Id of the SQL user: squ_…" }),
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
  }),
);

export const sqlUsers = t.Array(sqlUser);

export const newSqlUser = named(
  "NewSqlUser",
  t.Object(
    {
      name: t.String({
        minLength: 1,
        maxLength: 60,
        description: "What or who it is for; unique in the database, ignoring case",
      }),
    },
    strict,
  ),
  { name: "Metabase" },
);

export const createdSqlUser = named("CreatedSqlUser", t.Object({ sql_user: sqlUser, credentials }));
