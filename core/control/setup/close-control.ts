/**
 * Closes the control plane's database to other roles. Postgres lets every role connect to a new database, and on a server
 * that also holds replicas, customers have roles: there they could call functions, listen, and take the advisory locks that
 * other customers' requests wait for.
 */
import type pg from "pg";
import { warning } from "../../check-result";
import type { Logger } from "../../log";
import { quoteIdent } from "../../replica";

/** Another program's relation in the database, whose users would lose access; `$1` is the control plane's role. */
export const OTHER_RELATION = `
  select c.oid::regclass::text as name from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    and c.relowner <> coalesce(to_regrole(quote_ident($1))::oid, 0)
    and not exists (
      select from pg_depend as d
      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
  limit 1`;

export const OPEN_DATABASE = `
  select datname as name, has_database_privilege('public', oid, 'connect') as "isOpen",
    pg_has_role(datdba, 'usage') as "mayClose", current_user as role
  from pg_database where datname = current_database()`;

export interface OpenDatabase {
  name: string;
  isOpen: boolean;
  mayClose: boolean;
  role: string;
}

/**
 * Revokes the right to connect from PUBLIC if the database is ours: this role owns it, and it holds nothing of other
 * programs. In any case, revokes the right to call our functions. Logs a warning while the database stays open.
 */
export async function closeControl(client: pg.Client, log: Logger): Promise<void> {
  const before = await openDatabase(client);
  await client.query("begin");
  try {
    // Two processes that change one row of the catalog at once would fail.
    await client.query("select pg_advisory_xact_lock(hashtextextended('basetide functions', 0))");
    await client.query(REVOKE_FUNCTIONS);
    if (before.isOpen && before.mayClose && !(await holdsOthers(client, before)))
      await client.query(`revoke connect, temporary on database ${quoteIdent(before.name)} from public`);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
  if (!before.isOpen) return;
  const { isOpen } = await openDatabase(client);
  if (isOpen) log.warn(openProblem(before), "the control plane's database is open");
  else log.info({ database: before.name }, "control plane's database closed to other roles");
}

async function holdsOthers(client: pg.Client, { role }: OpenDatabase): Promise<boolean> {
  const { rows } = await client.query(OTHER_RELATION, [role]);
  return rows.length > 0;
}

/** What to say about a database that stays open. */
export function openProblem({ name }: Pick<OpenDatabase, "name">) {
  return warning(
    "rights",
    `Every role may connect to the control plane's database ${name}: if replicas are on the same server, customers can delay others' requests there`,
    `Keep the replicas on another server (REPLICA_URL). Or, if no other program uses the database, run as its owner: revoke connect, temporary on database ${quoteIdent(name)} from public`,
  );
}

async function openDatabase(client: pg.Client): Promise<OpenDatabase> {
  const { rows } = await client.query<OpenDatabase>(OPEN_DATABASE);
  return rows[0]!;
}

/** New functions may be called by PUBLIC. */
const REVOKE_FUNCTIONS = `
  do $$
  declare
    f regprocedure;
  begin
    for f in
      select p.oid from pg_proc as p join installed_functions as i on p.oid::regprocedure::text = any (i.signatures)
      where p.pronamespace = current_schema()::regnamespace and pg_has_role(p.proowner, 'usage')
        and has_function_privilege('public', p.oid, 'execute')
    loop
      execute format('revoke execute on function %s from public', f);
    end loop;
  end $$`;
