/**
 * Rights of a role on a customer's server that reach beyond the database's own tables. Members who run SQL with such a
 * role read, and change, what Basetide has nothing to do with.
 */
import type { Sql } from "postgres";

/** Roles of Postgres and of managed servers that give such rights to their members. */
const POWERFUL_ROLES = [
  "pg_read_server_files",
  "pg_write_server_files",
  "pg_execute_server_program",
  "pg_read_all_data",
  "pg_write_all_data",
  "pg_read_all_stats",
  "pg_signal_backend",
  "pg_maintain",
  "rds_superuser",
  "rds_replication",
  "cloudsqlsuperuser",
  "alloydbsuperuser",
  "azure_pg_admin",
  "neon_superuser",
];

/** Returns such rights of the session's role, each as what the role "…": `is a superuser`. */
export async function wideRights(sql: Sql): Promise<string[]> {
  const [row] = await sql<{ rights: string[] }[]>`
    select case when r.rolsuper then array['is a superuser'] else array_remove(array[
        case when r.rolbypassrls then 'bypasses row-level security' end,
        case when r.rolreplication then 'may start replication' end,
        case when r.rolcreaterole and current_setting('server_version_num')::int < 160000
          then 'may grant itself other roles' end], null)
      || array(select 'is a member of ' || p.rolname from pg_roles as p
        where p.rolname = any (${POWERFUL_ROLES}) and pg_has_role(r.oid, p.oid, 'member') order by 1) end as rights
    from pg_roles as r where r.rolname = current_user`;
  const rights = row?.rights ?? [];
  return rights.length > 0 ? rights : catalogRights(sql);
}

/** Returns what of the server the role may call or read although everyone else may not; at most a few. */
async function catalogRights(sql: Sql): Promise<string[]> {
  const rows = await sql<{ what: string }[]>`
    with mine as (select r.oid from pg_roles as r where pg_has_role(current_user, r.oid, 'member')),
    closed as (select i.classoid, i.objoid from pg_init_privs as i
      where i.objsubid = 0 and not exists (select from aclexplode(i.initprivs) as a where a.grantee = 0))
    select format('may call %s', p.oid::regprocedure) as what
    from closed join pg_proc as p on closed.classoid = 'pg_proc'::regclass and p.oid = closed.objoid
    where exists (select from mine where has_function_privilege(mine.oid, p.oid, 'execute'))
    union
    select format('may read %s', c.oid::regclass)
    from closed join pg_class as c on closed.classoid = 'pg_class'::regclass and c.oid = closed.objoid
    where c.relkind in ('r', 'v') and exists (select from mine where has_table_privilege(mine.oid, c.oid, 'select'))
    order by 1 limit 3`;
  return rows.map(({ what }) => what);
}

/** Returns what the session's role, or one that it may act as, could change in the database or end; at most a few. */
export async function writeRights(sql: Sql): Promise<string[]> {
  const rows = await sql<{ what: string }[]>`
    with mine as (select r.oid, r.rolname from pg_roles as r where pg_has_role(current_user, r.oid, 'member')),
    own as (select n.oid, n.nspname, n.nspowner from pg_namespace as n
      where n.nspname !~ '^pg_' and n.nspname <> 'information_schema')
    select what from (
      select 'may create schemas' as what from mine
      where has_database_privilege(mine.oid, current_database(), 'create')
      union
      select format('may create objects in the schema %I', own.nspname) from mine, own
      where has_schema_privilege(mine.oid, own.oid, 'create')
      union
      select format('may end sessions of %I', mine.rolname) from mine join pg_roles as r on r.oid = mine.oid
      where r.rolcanlogin and r.rolname <> current_user
      union
      select format('may create databases or roles') from mine join pg_roles as r on r.oid = mine.oid
      where r.rolcreatedb or r.rolcreaterole
      union
      select format('may change %s', c.oid::regclass) from mine, own join pg_class as c on c.relnamespace = own.oid
      where c.relkind in ('r', 'p', 'v', 'f', 'm') and (has_table_privilege(mine.oid, c.oid, 'insert, update, delete, truncate')
        or has_any_column_privilege(mine.oid, c.oid, 'insert, update') or c.relowner = mine.oid)
      union
      select format('may use the foreign server %I', s.srvname) from mine join pg_foreign_server as s
        on has_server_privilege(mine.oid, s.oid, 'usage')
      union
      select format('may change %s', c.oid::regclass) from mine, own join pg_class as c on c.relnamespace = own.oid
      where c.relkind = 'S' and has_sequence_privilege(mine.oid, c.oid, 'usage, update')
    ) as found order by 1 limit 5`;
  return rows.map(({ what }) => what);
}
