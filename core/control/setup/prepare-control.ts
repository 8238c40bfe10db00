/**
 * Prepares a Postgres server to hold the control plane, as its superuser: a role that owns one database, may do
 * nothing else on the server, and is the only one that may connect to it.
 */
import { conflict } from "../../errors";
import {
  databaseUrl,
  ensureLogin,
  giveDatabase,
  type Login,
  majorVersion,
  quoteIdent,
  tryAll,
  withAdmin,
} from "../../replica";
import { OTHER_RELATION } from "./close-control";

/**
 * Creates the role and the database. Idempotent; objects that a superuser created in the database are given to the
 * role.
 *
 * @param superuserUrl of any database on the server
 * @throws BasetideError `conflict` if the database contains objects of other programs
 * @returns statements that the server refused because its operator is not a superuser. The service runs without
 *   them.
 */
export async function prepareControl(
  superuserUrl: string,
  login: Login & { database: string },
): Promise<string[]> {
  const [name, role] = [quoteIdent(login.database), quoteIdent(login.role)];
  return withAdmin(superuserUrl, async (admin) => {
    await admin`select pg_advisory_lock(hashtextextended('basetide prepare', 0))`;
    const [found] = await admin`select from pg_database where datname = ${login.database}`;
    if (found) await refuseOthers(superuserUrl, login);
    await ensureLogin(admin, login, "");
    // The operator of a managed server can only reassign objects that a role of theirs could own.
    const [me] = await admin<{ is_super: boolean }[]>`
      select rolsuper as is_super from pg_roles where rolname = current_user`;
    if (!me!.is_super) await admin.unsafe(`grant ${role} to current_user`);
    if (!found) await admin.unsafe(`create database ${name} template template0 encoding 'UTF8'`);
    await giveDatabase(superuserUrl, login.database, login.role);
    await admin.unsafe(`revoke all on database ${name} from public`);
    const version = await majorVersion(admin);
    return version >= 16 ? tryAll(admin, [`grant pg_use_reserved_connections to ${role}`]) : [];
  });
}

/**
 * A database with tables and without our migrations belongs to another program, which would lose its rights there.
 */
async function refuseOthers(
  superuserUrl: string,
  { database, role }: Login & { database: string },
): Promise<void> {
  await withAdmin(databaseUrl(superuserUrl, database), async (sql) => {
    const [isOurs] = await sql`select where to_regclass('public.schema_migrations') is not null`;
    const [other] = isOurs ? [] : await sql.unsafe<{ name: string }[]>(OTHER_RELATION, [role]);
    if (!other) return;
    throw conflict(
      `The database ${database} contains ${other.name}, which does not belong to Basetide, and its other users would lose access: use a separate database in DATABASE_URL`,
    );
  });
}
