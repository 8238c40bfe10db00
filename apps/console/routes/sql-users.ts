/** API routes for the SQL users of a base's database: each has credentials of its own. */
import { Elysia } from "elysia";
import {
  allowWrites,
  createSqlUserOf,
  getBase,
  type ManagementContext,
  resolveWrites,
} from "../../../core/control/bases";
import {
  getDatabase,
  listSqlUsers,
  revokeSqlUser,
  rotateSqlUser,
  type SqlUser,
  showSqlUserCredentials,
} from "../../../core/control/placement";
import { bearerAuth } from "../bearer-auth";
import { credentials, idParams } from "../schemas";
import { raises } from "../schemas/parts";
import * as schemas from "../schemas/sql-users";
import { findSqlUser } from "../sql-user";
import { writeRoutes } from "./writes";

/** With the log of what they have written. */
export function sqlUserRoutes(ctx: ManagementContext) {
  return new Elysia({ name: "sql-users" }).use(userRoutes(ctx)).use(writeRoutes(ctx));
}

function userRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  const databaseOf = async (baseId: string, accountId: string) => {
    const base = await getBase(db, baseId, accountId);
    return getDatabase(db, base.database.id);
  };
  return new Elysia({ prefix: "/api/v1/bases/:id/sql-users", tags: ["Credentials"] })
    .use(bearerAuth(db))
    .get(
      "",
      async ({ account, params }) => {
        const database = await databaseOf(params.id, account.id);
        return (await listSqlUsers(db, database.id)).map((user) => toJson(user, params.id));
      },
      {
        params: idParams,
        response: { 200: schemas.sqlUsers },
        detail: {
          summary: "SQL users of the base's database",
          description: "All bases in one database share its users. The list has no passwords.",
        },
      },
    )
    .post(
      "",
      async ({ account, actor, body, params, set }) => {
        const as = { ...ctx, actor };
        const base = await getBase(db, params.id, account.id);
        const database = await getDatabase(db, base.database.id);
        const user = await createSqlUserOf(as, base, body.name, body.writes);
        set.status = 201;
        return {
          sql_user: toJson(user, base.id),
          credentials: await showSqlUserCredentials(as, database, user),
        };
      },
      {
        params: idParams,
        body: schemas.newSqlUser,
        response: { 201: schemas.createdSqlUser },
        detail: {
          summary: "Create a SQL user",
          description:
            "It reads what the database's own role reads, with a password of its own. Rejected (409) for a database that you host, on a server before Postgres 16, and beyond the maximum of users.",
          ...raises("already_exists", "conflict"),
        },
      },
    )
    .patch(
      "/:user",
      async ({ account, actor, body, params }) => {
        const as = { ...ctx, actor };
        const base = await getBase(db, params.id, account.id);
        const { user } = await findSqlUser(db, account.id, params);
        return toJson(await allowWrites(as, base, user, await resolveWrites(as, base, body.writes)), base.id);
      },
      {
        params: schemas.sqlUserParams,
        body: schemas.sqlUserChange,
        response: { 200: schemas.sqlUser },
        detail: {
          summary: "Change what a SQL user may write",
          description: "It holds at once, also for open sessions.",
          ...raises("conflict", "invalid_request"),
        },
      },
    )
    .get(
      "/:user/credentials",
      async ({ account, actor, params }) => {
        const { database, user } = await findSqlUser(db, account.id, params);
        return showSqlUserCredentials({ ...ctx, actor }, database, user);
      },
      {
        params: schemas.sqlUserParams,
        response: { 200: credentials },
        detail: {
          summary: "How to connect as a SQL user",
          description: "The audit log records each request.",
        },
      },
    )
    .post(
      "/:user/rotate",
      async ({ account, actor, params }) => {
        const { database, user } = await findSqlUser(db, account.id, params);
        return rotateSqlUser({ ...ctx, actor }, database, user);
      },
      {
        params: schemas.sqlUserParams,
        response: { 200: credentials },
        detail: {
          summary: "Set a new password of a SQL user. The old password no longer works",
          description: "Open connections, and other users, are not affected.",
        },
      },
    )
    .delete(
      "/:user",
      async ({ account, actor, params }) => {
        const { database, user } = await findSqlUser(db, account.id, params);
        await revokeSqlUser({ ...ctx, actor }, database, user);
        return new Response(null, { status: 204 });
      },
      {
        params: schemas.sqlUserParams,
        detail: {
          summary: "Revoke a SQL user",
          description:
            "Its connections end, and it can no longer log in. What it created in a writable database stays, no longer runs, and belongs to a role without a login; the activity lists it.",
          responses: { 204: { description: "Revoked" } },
        },
      },
    );
}

function toJson({ id, name, role, createdBy, createdAt, lastSeenAt, writes }: SqlUser, baseId: string) {
  return {
    id,
    name,
    user: role,
    created_by: createdBy,
    created_at: createdAt.toISOString(),
    last_seen_at: lastSeenAt?.toISOString() ?? null,
    writes: writes[baseId] ?? null,
  };
}
