/**
 * Prepares a Postgres server to hold the control plane, as its superuser: a role that owns one database, may do nothing
 * else on the server, and is the only one that may connect there.
 */
import {
  ensureLogin,
  giveDatabase,
  type Login,
  majorVersion,
  quoteIdent,
  tryAll,
  withAdmin,
} from "../replica";

/**
 * Idempotent. What a superuser made in the database is given to the role.
 *
 * @param superuserUrl of any database on the server
 * @returns statements that the server refused: its operator is not a superuser. The service runs without them.
 */
export async function prepareControl(
  superuserUrl: string,
  login: Login & { database: string },
): Promise<string[]> {
  const [name, role] = [quoteIdent(login.database), quoteIdent(login.role)];
  return withAdmin(superuserUrl, async (admin) => {
    await admin`select pg_advisory_lock(hashtextextended('basetide prepare', 0))`;
    await ensureLogin(admin, login, "");
    const [found] = await admin`select from pg_database where datname = ${login.database}`;
    // The operator of a managed server gives away only what a role of theirs could own.
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
