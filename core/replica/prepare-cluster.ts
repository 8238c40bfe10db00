/**
 * Prepares a Postgres server to hold replicas, as its superuser: creates a role for the cluster's admin that may only
 * create databases and roles, and a locked-down database that replicas are copied from.
 */
import { createHash } from "node:crypto";
import type { Sql } from "postgres";
import { ANY_ROLE_PATTERN } from "./database-roles";
import { INSTALLED_VERSION, installIn } from "./install";
import { quoteIdent } from "./naming";
import {
  databaseUrl,
  FORBIDDEN_FUNCTIONS,
  LABEL,
  overRaces,
  TEMPLATE_DATABASE,
  withAdmin,
} from "./provision";
import { ENFORCED_SETTINGS } from "./role-limits";
import { ensureLogin, giveDatabase, type Login, majorVersion, serverSql, tryAll } from "./server-roles";

const template = `${serverSql("template.sql")}
do $dblink$
begin
  if exists (select from pg_available_extensions where name = 'dblink') then
    ${serverSql("dblink.sql")}
  end if;
end $dblink$;`;

/** Its name until it is complete. */
const TEMPLATE_DRAFT = `${TEMPLATE_DATABASE}_draft`;
/** Its name once it is replaced, until it is dropped. */
const OUTDATED_TEMPLATE = `${TEMPLATE_DATABASE}_outdated`;
/** The schema of a base in a database of its own. */
const DEFAULT_SCHEMA = "public";

interface ClusterOptions {
  /** The server is used by Basetide alone: PUBLIC may connect to none of its databases. */
  isDedicated?: boolean;
}

/**
 * Idempotent, and safe when several processes do it concurrently. Databases and roles that the service created as a
 * superuser are given to the admin.
 *
 * @param superuserUrl of any database on the server
 * @returns statements that the server refused because its operator is not a superuser. The service runs without them.
 */
export async function prepareCluster(
  superuserUrl: string,
  login: Login & { database: string },
  { isDedicated = false }: ClusterOptions = {},
): Promise<string[]> {
  return withAdmin(superuserUrl, async (admin) => {
    await admin`select pg_advisory_lock(hashtextextended('basetide prepare', 0))`;
    await ensureLogin(admin, login, "createdb createrole");
    const refused = await tryAll(admin, await grants(admin, login));
    // The watchdog reads the list of temporary files from this database.
    const home = databaseUrl(superuserUrl, login.database);
    const checkFiles = `grant execute on function pg_ls_tmpdir() to ${quoteIdent(login.role)}`;
    refused.push(...(await withAdmin(home, (sql) => tryAll(sql, [checkFiles]))));
    refused.push(...(await makeTemplate(admin, superuserUrl, login.role)));
    await adoptRoles(admin, login.role);
    await adoptDatabases(admin, superuserUrl, login.role);
    if (isDedicated) await closeDatabases(admin);
    return refused;
  });
}

async function grants(admin: Sql, { role, database }: { role: string; database: string }): Promise<string[]> {
  const [version, name] = [await majorVersion(admin), quoteIdent(role)];
  const settings = Object.keys(ENFORCED_SETTINGS).join(", ");
  return [
    `grant connect on database ${quoteIdent(database)} to ${name}`,
    ...(version >= 15 ? [`grant set on parameter ${settings} to ${name}`] : []),
    ...(version >= 16 ? [`grant pg_use_reserved_connections to ${name}`] : []),
  ];
}

/**
 * Creates the database that replicas are copied from, with a replica's schemas and functions in it: copying them takes
 * a fraction of the time that installing them takes. An outdated one is replaced.
 */
async function makeTemplate(admin: Sql, superuserUrl: string, role: string): Promise<string[]> {
  const owner = quoteIdent(role);
  const text = template.replaceAll("{{role}}", owner).replaceAll("{{forbidden}}", FORBIDDEN_FUNCTIONS);
  const version = createHash("sha256").update(`${INSTALLED_VERSION} ${text}`).digest("hex").slice(0, 16);
  const [found] = await admin<{ version: string | null }[]>`
    select shobj_description(oid, 'pg_database') as version from pg_database where datname = ${TEMPLATE_DATABASE}`;
  if (found?.version === version) return [];
  const [{ is_super: isSuper } = { is_super: false }] = await admin<{ is_super: boolean }[]>`
    select rolsuper as is_super from pg_roles where rolname = current_user`;
  if (!isSuper) return [`-- in a database ${TEMPLATE_DATABASE}:\n${text}`];
  const [name, draft, outdated] = [TEMPLATE_DATABASE, TEMPLATE_DRAFT, OUTDATED_TEMPLATE].map(quoteIdent);
  for (const left of [draft, outdated]) await admin.unsafe(`drop database if exists ${left} with (force)`);
  await admin.unsafe(`create database ${draft} template template0 encoding 'UTF8'`);
  await overRaces(() =>
    admin.unsafe(`
      revoke all on database ${draft} from public;
      alter database ${draft} owner to ${owner};
      grant connect on database ${draft} to ${owner}`),
  );
  await withAdmin(databaseUrl(superuserUrl, TEMPLATE_DRAFT), async (sql) => {
    await sql.unsafe(text);
    await sql.begin(async (tx) => {
      await tx.unsafe(`set local role ${owner}`);
      await installIn(tx, { schema: DEFAULT_SCHEMA });
    });
  });
  await admin.unsafe(`alter database ${draft} allow_connections false`);
  await admin.unsafe(`comment on database ${draft} is '${version}'`);
  // In one transaction: a replica that is created meanwhile finds one of the two, and is never without its limits.
  await admin.begin(async (tx) => {
    if (found) {
      await tx.unsafe(`alter database ${name} rename to ${outdated}`);
      // An operator may have marked it, and Postgres drops no template.
      await tx.unsafe(`alter database ${outdated} is_template false`);
    }
    await tx.unsafe(`alter database ${draft} rename to ${name}`);
  });
  await admin.unsafe(`drop database if exists ${outdated}`);
  if (found) await lockDownAgain(admin, superuserUrl, role, text);
  return [];
}

/** Locks the databases down that were copied from an earlier template. */
async function lockDownAgain(admin: Sql, superuserUrl: string, role: string, text: string): Promise<void> {
  const databases = await admin<{ name: string }[]>`
    select datname as name from pg_database as d
    where starts_with(shobj_description(d.oid, 'pg_database'), ${`${LABEL} `}) and datallowconn
      and d.datdba = to_regrole(quote_ident(${role}))`;
  for (const { name } of databases) {
    await withAdmin(databaseUrl(superuserUrl, name), (sql) => sql.unsafe(text));
  }
}

/**
 * Grants the admin the customers' roles that a superuser created, as Postgres 16 and later require. Roles that another
 * role than a superuser administers belong to another installation.
 */
async function adoptRoles(admin: Sql, role: string): Promise<void> {
  const roles = await admin<{ name: string }[]>`
    select r.rolname as name from pg_roles as r
    where r.rolname ~ ${ANY_ROLE_PATTERN} and not exists (
      select from pg_auth_members as m
      where m.roleid = r.oid and m.member = to_regrole(quote_ident(${role})) and m.admin_option)
      and not exists (
        select from pg_auth_members as m join pg_roles as o on o.oid = m.member
        where m.roleid = r.oid and o.rolcreaterole and not o.rolsuper and o.rolname <> ${role})
      and r.rolname <> ${role}`;
  for (const { name } of roles) {
    await overRaces(() => admin.unsafe(`grant ${quoteIdent(name)} to ${quoteIdent(role)} with admin option`));
  }
}

/**
 * Gives the admin the service's databases that a superuser created. The next lease of each reinstalls its functions.
 */
async function adoptDatabases(admin: Sql, superuserUrl: string, role: string): Promise<void> {
  const databases = await admin<{ name: string }[]>`
    select datname as name from pg_database as d
    where starts_with(shobj_description(d.oid, 'pg_database'), ${`${LABEL} `}) and datallowconn
      and d.datdba = current_user::regrole`;
  for (const { name } of databases) {
    await giveDatabase(superuserUrl, name, role);
    await withAdmin(databaseUrl(superuserUrl, name), async (sql) => {
      const swaps = await sql<{ name: string }[]>`
        select nspname as name from pg_namespace
        where nspname like '%\\_swap' and nspowner = to_regrole(quote_ident(${role}))`;
      for (const swap of swaps) await sql.unsafe(`comment on schema ${quoteIdent(swap.name)} is null`);
      await sql.unsafe(
        template.replaceAll("{{role}}", quoteIdent(role)).replaceAll("{{forbidden}}", FORBIDDEN_FUNCTIONS),
      );
    });
  }
}

async function closeDatabases(admin: Sql): Promise<void> {
  const open = await admin<{ name: string }[]>`
    select datname as name from pg_database
    where datallowconn and has_database_privilege('public', oid, 'connect') and datname not like 'bt\\_%'`;
  for (const { name } of open) {
    await overRaces(() =>
      admin.unsafe(`revoke connect, temporary on database ${quoteIdent(name)} from public`),
    );
  }
}
