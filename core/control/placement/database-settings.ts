/** Finds settings of a database that a replica cannot work with, such as its encoding, or being read-only. */

import type { Sql } from "postgres";
import { problem } from "../../check-result";
import { quoteIdent } from "../../replica";
import type { DatabaseCheck } from "./database-check";

/** Returns the first problem that prevents a replica in the database of `sql`; undefined if there is none. */
export async function settingsProblem(sql: Sql): Promise<DatabaseCheck | undefined> {
  return (await readOnlyProblem(sql)) ?? (await encodingProblem(sql)) ?? (await replicationRoleProblem(sql));
}

/** Returns why the database is read-only; undefined if it is not. */
export async function readOnlyProblem(sql: Sql): Promise<DatabaseCheck | undefined> {
  const [row] = await sql<{ name: string; is_standby: boolean; is_read_only: boolean }[]>`
    select current_database() as name, pg_is_in_recovery() as is_standby,
      current_setting('transaction_read_only')::boolean as is_read_only`;
  const { name, is_standby: isStandby, is_read_only: isReadOnly } = row!;
  if (isStandby)
    return problem("rights", "The server is a read-only standby", "Use the address of the primary");
  if (!isReadOnly) return undefined;
  return problem(
    "rights",
    `The database ${name} is read-only by default for this role, as providers set it when a disk is full`,
    `If the disk is full, free some space. Then run: alter database ${quoteIdent(name)} set default_transaction_read_only = off;`,
  );
}

async function encodingProblem(sql: Sql): Promise<DatabaseCheck | undefined> {
  const [row] = await sql<{ name: string; encoding: string }[]>`
    select current_database() as name, current_setting('server_encoding') as encoding`;
  const { name, encoding } = row!;
  if (encoding === "UTF8") return undefined;
  return problem(
    "rights",
    `The database ${name} has the encoding ${encoding}, but records contain characters that only UTF8 supports`,
    "Use a database that was created with: create database airtable template template0 encoding 'UTF8';",
  );
}

/** Foreign keys and deferred constraints are not enforced then, and only a superuser may change it for a session. */
async function replicationRoleProblem(sql: Sql): Promise<DatabaseCheck | undefined> {
  const [row] = await sql<{ role: string; mode: string }[]>`
    select current_user::text as role, current_setting('session_replication_role') as mode`;
  const { role, mode } = row!;
  if (mode === "origin") return undefined;
  return problem(
    "rights",
    `session_replication_role is ${mode} by default for the role ${role}: constraints and triggers are not enforced`,
    `Run as a superuser: alter role ${quoteIdent(role)} set session_replication_role = origin;`,
  );
}

/** Returns roles that could read the base's tables because of default privileges for our tables in the schema. */
export async function readersByDefault(sql: Sql, schema: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select distinct case a.grantee when 0 then 'public' else pg_get_userbyid(a.grantee)::text end as name
    from pg_catalog.pg_default_acl as d join pg_catalog.pg_roles as r on r.oid = d.defaclrole
      cross join aclexplode(d.defaclacl) as a
    where r.rolname = current_user and d.defaclobjtype = 'r' and a.privilege_type = 'SELECT' and a.grantee <> r.oid
      and d.defaclnamespace = to_regnamespace(quote_ident(${schema}::text))
    order by 1`;
  return rows.map(({ name }) => name);
}
