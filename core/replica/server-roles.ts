/**
 * One-time changes by a superuser on a Postgres server, so that the service can run without superuser rights: login
 * roles, and new owners of databases.
 */
import { readFileSync } from "node:fs";
import type { Sql } from "postgres";
import { appPath } from "../app-path";
import { BasetideError } from "../errors";
import { quoteIdent } from "./naming";
import { databaseUrl, overRaces, withAdmin } from "./provision";
import { runWithPassword } from "./role-password";

const takeOver = serverSql("take-over.sql");
const NO_RIGHT = "42501";

/** A login role with its password, as in a URL. */
export interface Login {
  role: string;
  password: string;
}

/** The text of a file in `sql/server`. */
export function serverSql(name: string): string {
  return readFileSync(appPath("sql/server", name), "utf8");
}

/** @throws BasetideError `config_invalid` for a URL without a user or a password */
export function loginOf(url: string, variable: string): Login & { database: string } {
  const { username, password, pathname } = new URL(url);
  const [role, secret, database] = [username, password, pathname.slice(1)].map(decodeURIComponent);
  if (!role || !secret || !database) {
    throw new BasetideError("config_invalid", `${variable}: must name a user, a password and a database`);
  }
  return { role, password: secret, database };
}

/**
 * Creates the role if it does not exist, and sets its password and `attributes`.
 *
 * @throws BasetideError `conflict` if the role is a superuser
 */
export async function ensureLogin(
  admin: Sql,
  { role, password }: Login,
  attributes: "" | "createdb createrole",
): Promise<void> {
  const name = quoteIdent(role);
  const [found] = await admin<{ is_super: boolean }[]>`
    select rolsuper as is_super from pg_roles where rolname = ${role}`;
  if (found?.is_super) {
    throw new BasetideError("conflict", `The role ${role} is a superuser. Use a dedicated role in the URL`);
  }
  if (!found) await admin.unsafe(`create role ${name}`);
  await overRaces(() =>
    runWithPassword(
      admin,
      password,
      (secret) => `alter role ${name} login ${attributes} password '${secret}'`,
    ),
  );
}

/** Gives `role` the database and all objects of the superuser's in it. Idempotent. */
export async function giveDatabase(superuserUrl: string, database: string, role: string): Promise<void> {
  const [name, owner] = [quoteIdent(database), quoteIdent(role)];
  await withAdmin(superuserUrl, (admin) =>
    overRaces(() => admin.unsafe(`alter database ${name} owner to ${owner}`)),
  );
  await withAdmin(databaseUrl(superuserUrl, database), (sql) =>
    sql.unsafe(takeOver.replaceAll("{{role}}", owner)),
  );
}

/** Runs statements that only some servers allow their admin. @returns those that this server refused */
export async function tryAll(admin: Sql, statements: string[]): Promise<string[]> {
  const refused: string[] = [];
  for (const statement of statements) {
    try {
      await overRaces(() => admin.unsafe(statement));
    } catch (error) {
      if ((error as { code?: string }).code !== NO_RIGHT) throw error;
      refused.push(statement);
    }
  }
  return refused;
}

/** Returns the server's major version. */
export async function majorVersion(admin: Sql): Promise<number> {
  const [row] = await admin<{ version: number }[]>`
    select current_setting('server_version_num')::int / 10000 as version`;
  return row!.version;
}
