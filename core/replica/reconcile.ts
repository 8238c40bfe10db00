/**
 * Compares a hosted database with what the control plane expects, and repairs the difference: after a restore of the
 * control plane, what was created, dropped or changed since the dump.
 */
import type { Sql } from "postgres";
import type { ServerUrl } from "../external";
import { CONNECT_SECONDS } from "../postgres";
import { schemasOf } from "./connection";
import { readersOf, writesOwnerOf } from "./database-roles";
import { pausedUntil } from "./paused-roles";
import {
  createDatabase,
  createRole,
  databaseUrl,
  FORBIDDEN_FUNCTIONS,
  LABEL,
  lockDownDatabase,
  type Provisioned,
  withAdmin,
} from "./provision";
import { DEFAULT_CONNECTIONS, ENFORCED_SETTINGS } from "./role-limits";
import { serverPool } from "./server-pools";
import { DBLINK_SCHEMA } from "./write-schemas";

/** The server's answers to a wrong password. */
const WRONG_PASSWORD = ["28P01", "28000"];

export interface HostedState {
  hasDatabase: boolean;
  hasRole: boolean;
  /** The installation that its label names; null without a label. */
  installation: string | null;
  /** The role without a login that holds the rights exists, and the database's own role is its member. */
  hasReaders: boolean;
  /** Only the role may connect, and may not call functions that write or block, as far as the admin can forbid it. */
  isLockedDown: boolean;
  takesPassword: boolean;
  /** The role has its limits, and the admin may end its sessions, as far as the server lets its admin do that. */
  isLimited: boolean;
  /** The watchdog forbids the role to connect until then; null if the role is not paused. */
  pausedUntil: Date | null;
  /** The requested schemas in which no replica is installed. */
  missingSchemas: string[];
  /** Those of the other requested schemas in which the role may create objects of its own. */
  writableSchemas: string[];
}

/** @throws BasetideError `replica_unavailable` for a server that cannot be reached */
export async function examineHosted(
  adminUrl: string,
  hosted: Provisioned,
  schemas: string[],
): Promise<HostedState> {
  const { database, role } = hosted;
  const found = await withAdmin(adminUrl, async (admin) => {
    const [row] = await admin<
      {
        has_database: boolean;
        has_role: boolean;
        label: string | null;
        open: boolean;
        has_readers: boolean;
        limits: string[] | null;
      }[]
    >`
      select (select rolconfig || ('connections=' || rolconnlimit) || ('member=' || pg_has_role(oid, 'usage'))
          from pg_roles where rolname = ${role}) as limits,
        d.oid is not null as has_database, to_regrole(${role}) is not null as has_role,
        exists (select from pg_auth_members as m where m.roleid = to_regrole(${readersOf(role)})
          and m.member = to_regrole(${role})) as has_readers,
        shobj_description(d.oid, 'pg_database') as label,
        coalesce(has_database_privilege('public', d.oid, 'connect, temporary')
          or not has_database_privilege(to_regrole(${role}), d.oid, 'connect'), false) as open
      from (values (1)) as one left join pg_database as d on d.datname = ${database}`;
    const [settable, until] = [await settableLimits(admin), await pausedUntil(admin, role)];
    return { ...row!, settable, until };
  });
  const limits = [
    `connections=${found.until ? 0 : (hosted.connections ?? DEFAULT_CONNECTIONS)}`,
    "member=true",
    ...found.settable.map((name) => `${name}=${ENFORCED_SETTINGS[name]}`),
  ];
  const state: HostedState = {
    hasDatabase: found.has_database,
    hasRole: found.has_role,
    hasReaders: found.has_readers,
    installation: installationOf(found.label),
    isLockedDown: !found.open,
    takesPassword: true,
    isLimited: limits.every((limit) => found.limits?.includes(limit)),
    pausedUntil: found.until,
    missingSchemas: schemas,
    writableSchemas: [],
  };
  if (!state.hasDatabase || !state.hasRole) return state;
  state.takesPassword = await takesPassword(adminUrl, hosted);
  await withAdmin(databaseUrl(adminUrl, database), async (sql) => {
    const rows = await sql<{ name: string; is_there: boolean; is_writable: boolean }[]>`
      select name, to_regnamespace(quote_ident(name || '_swap')) is not null as is_there,
        coalesce(has_schema_privilege(${role}, to_regnamespace(quote_ident(name)), 'create'), false) as is_writable
      from unnest(${schemas}::text[]) as name`;
    state.missingSchemas = rows.filter((row) => !row.is_there).map(({ name }) => name);
    state.writableSchemas = rows.filter((row) => row.is_there && row.is_writable).map(({ name }) => name);
    // The admin cannot forbid functions that it does not own.
    const [open] = await sql`
      select from pg_proc as p
      where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ ${FORBIDDEN_FUNCTIONS}
        and has_function_privilege('public', p.oid, 'execute') and pg_has_role(p.proowner, 'member') limit 1`;
    if (open) state.isLockedDown = false;
  });
  return state;
}

type EnforcedSetting = keyof typeof ENFORCED_SETTINGS;

/** Returns the settings that the admin may set for customers' roles. */
export async function settableLimits(admin: Sql): Promise<EnforcedSetting[]> {
  const names = Object.keys(ENFORCED_SETTINGS) as EnforcedSetting[];
  const [me] = await admin<{ is_super: boolean; version: number }[]>`
    select rolsuper as is_super, current_setting('server_version_num')::int / 10000 as version
    from pg_roles where rolname = current_user`;
  if (me!.is_super) return names;
  if (me!.version < 15) return [];
  const rows = await admin<{ name: EnforcedSetting }[]>`
    select name from unnest(${names}::text[]) as name where has_parameter_privilege(name, 'set')`;
  return rows.map(({ name }) => name);
}

/** Creates a missing role or database, empty, with the names and the password that they had. */
export async function restoreHosted(
  adminUrl: string,
  hosted: Provisioned,
  installation: string,
): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    const [found] = await admin<{ role: boolean; database: boolean }[]>`
      select to_regrole(${hosted.role}) is not null as role,
        exists(select from pg_database where datname = ${hosted.database}) as database`;
    if (!found!.role) await createRole(admin, hosted);
    if (!found!.database) await createDatabase(admin, hosted.database, installation);
  });
  await lockDownDatabase(adminUrl, hosted);
}

export interface Labelled {
  database: string;
  /** Our role that may connect. */
  role: string | null;
  /** Time since it was labelled, by the server's clock. */
  madeMsAgo: number;
  /** Connected processes of ours: of another control plane, or of this one before it was restored. */
  inUse: number;
}

/** Returns the databases of the cluster that have the installation's label. */
export async function labelledDatabases(adminUrl: string, installation: string): Promise<Labelled[]> {
  return withAdmin(adminUrl, async (admin) => {
    const rows = await admin<
      { database: string; label: string; role: string | null; in_use: number; now: Date }[]
    >`
      select now() as now, d.datname as database, shobj_description(d.oid, 'pg_database') as label,
        (select r.rolname from aclexplode(d.datacl) as a join pg_roles as r on r.oid = a.grantee
          where a.privilege_type = 'CONNECT' and r.rolname ~ '^bt_[0-9a-f]{16}$' limit 1) as role,
        (select count(*)::int from pg_stat_activity as s
          where s.datid = d.oid and s.application_name = 'basetide') as in_use
      from pg_database as d
      where starts_with(shobj_description(d.oid, 'pg_database'), ${`${LABEL} ${installation} `})
      order by 1`;
    return rows.map(({ database, label, role, in_use, now }) => ({
      database,
      role,
      madeMsAgo: now.getTime() - new Date(label.split(" ")[2] ?? 0).getTime(),
      inUse: in_use,
    }));
  });
}

/** Counts the tables, views, functions and similar objects in the database that no role of ours created. */
export async function countForeign(adminUrl: string, { database, role }: Labelled): Promise<number> {
  return withAdmin(databaseUrl(adminUrl, database), async (sql) => {
    const [row] = await sql<{ count: number }[]>`
      select count(*)::int as count from (
        select relnamespace as place, relowner as owner from pg_class
        union all select pronamespace, proowner from pg_proc
        union all select typnamespace, typowner from pg_type
      ) as made join pg_namespace as n on n.oid = made.place
      where made.owner <> current_user::regrole and pg_get_userbyid(made.owner) <> ${writesOwnerOf(role ?? undefined, database)}
        and n.nspname !~ '^pg_' and n.nspname not in ('information_schema', ${DBLINK_SCHEMA})`;
    return row!.count;
  });
}

/**
 * Drops a replica's leftovers in its schema (tables and views of the admin's) after the replica's own schema, with all
 * that was known of them, is gone. They are rebuilt from the source. Objects that a customer created on top of them
 * prevent the drop, and stay.
 *
 * @throws BasetideError `internal` if something depends on one of them
 */
export async function dropLeftovers(url: ServerUrl, schema: string): Promise<void> {
  await withAdmin(url, async (sql) => {
    const left = await sql<{ name: string; kind: string }[]>`
      select c.oid::regclass::text as name, case c.relkind when 'v' then 'view' else 'table' end as kind
      from pg_class as c
      where c.relnamespace = to_regnamespace(quote_ident(${schema})) and c.relkind in ('r', 'p', 'v')
        and c.relowner = current_user::regrole
      order by c.relkind = 'v' desc, 1`;
    await sql.begin(async (tx) => {
      for (const { name, kind } of left) await tx.unsafe(`drop ${kind} ${name}`);
    });
  });
}

/** Returns whether the replica's schema is installed in the database at `url`. @throws errors of the connection */
export async function hasReplica(url: ServerUrl, schema: string): Promise<boolean> {
  return withAdmin(url, async (sql) => {
    const [row] = await sql<{ found: boolean }[]>`
      select to_regnamespace(${schemasOf(schema).swap}) is not null as found`;
    return row!.found;
  });
}

function installationOf(label: string | null): string | null {
  const [word, installation] = (label ?? "").split(" ");
  return word === LABEL && installation ? installation : null;
}

/** Whether the server accepts the role's password. */
export async function takesPassword(
  adminUrl: string,
  { database, role, password }: Provisioned,
): Promise<boolean> {
  const url = new URL(databaseUrl(adminUrl, database));
  url.username = role;
  url.password = password;
  const options = { max: 1, connect_timeout: CONNECT_SECONDS, onnotice: () => {} };
  const { sql } = serverPool(url.href, options, { use: "admin", patienceMs: 0 });
  try {
    await sql`select 1`;
    return true;
  } catch (error) {
    // Any other error (too many connections, say) comes after the password was accepted.
    return !WRONG_PASSWORD.includes(String((error as { code?: unknown }).code));
  } finally {
    await sql.end({ timeout: 1 });
  }
}
