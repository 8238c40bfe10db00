/**
 * Checks whether a database that a customer hosts can hold a replica, step by step, from its address to the rights
 * there, so that the customer reads what is fine and exactly what is missing.
 */

import type postgres from "postgres";
import { withTimeout } from "../../async";
import { isProblem, ok, problem, warning } from "../../check-result";
import type { Context } from "../../context";
import { BasetideError, isBasetideError } from "../../errors";
import type { ServerUrl } from "../../external";
import { checkHost } from "../../net";
import { probe, refuseKnownPooler, type ServerReport, type SessionOptions } from "../../postgres";
import { CHECKING, connectReplica, openForCheck, quoteIdent } from "../../replica";
import { connectionProblem } from "./connection-problem";
import { checkServer, type DatabaseCheck, FIRST_REPLICA_VERSION, poolerProblem } from "./database-check";
import { readersByDefault, settingsProblem } from "./database-settings";
import { externalServer, parseConnectionTarget } from "./external-url";
import { wideRights, writeRights } from "./privileges";
import { isSameServer, type ServerIdentity, serverIdentity } from "./server-identity";

/** For all steps together: a server that accepts connections and then hangs must not block anyone. */
const TOTAL_TIMEOUT_MS = 20_000;

type InspectContext = Pick<Context, "config" | "db">;

/** The results, with advice for the use of the database. */
export interface Inspection {
  checks: DatabaseCheck[];
  /** Undefined if the connection failed. */
  report: ServerReport | undefined;
}

/**
 * Inspects the database of `url`, connected as the service will be, and stops at the first problem. Read-only.
 *
 * @param schema a valid name
 * @param acceptsPrivileges whether a role with more rights than Basetide needs is only a warning
 */
export async function inspect(
  ctx: InspectContext,
  url: string,
  schema: string,
  acceptsPrivileges = false,
): Promise<Inspection> {
  return inspectWith(ctx, url, schema, async (sql, facts) => {
    const settings = await settingsProblem(sql);
    return settings ? [settings] : judgeRights(schema, facts, acceptsPrivileges);
  });
}

/**
 * Inspects a URL that members read a customer's database with: its role must be able to read the schemas of the bases,
 * and to change nothing.
 */
export async function inspectReader(
  ctx: InspectContext,
  url: string,
  schemas: string[],
): Promise<{ checks: DatabaseCheck[]; isEncrypted: boolean }> {
  const { checks, report } = await inspectWith(ctx, url, schemas[0] ?? "public", async (sql, facts) => {
    const remedy = "Create a role that may only connect, use the schema, and select from its tables";
    const wide = facts.wide_rights.length > 0 ? facts.wide_rights : await writeRights(sql);
    if (wide.length > 0) {
      const message = `The role ${facts.role} cannot be used for reading: it ${wide.join(", ")}`;
      return [problem("rights", message, remedy)];
    }
    const unread = await sql<{ name: string }[]>`
      select name from unnest(${schemas}::text[]) as name
      where not coalesce(has_schema_privilege(to_regnamespace(quote_ident(name)), 'usage')
        and has_table_privilege(to_regclass(format('%I._sync_meta', name)), 'select'), false)`;
    if (unread.length === 0) return [ok("rights", `${facts.role} can read, and change nothing`)];
    const names = unread.map(({ name }) => quoteIdent(name));
    return names.map((name) =>
      problem(
        "rights",
        `The role ${facts.role} cannot read the schema ${name}`,
        `grant usage on schema ${name} to ${quoteIdent(facts.role)}; grant select on all tables in schema ${name} to ${quoteIdent(facts.role)}; alter default privileges in schema ${name} grant select on tables to ${quoteIdent(facts.role)};`,
      ),
    );
  });
  return { checks, isEncrypted: report?.link.tls !== undefined };
}

type Judge = (sql: postgres.Sql, facts: Facts) => Promise<DatabaseCheck[]>;

async function inspectWith(
  ctx: InspectContext,
  url: string,
  schema: string,
  judge: Judge,
): Promise<Inspection> {
  const checks: DatabaseCheck[] = [];
  let report: ServerReport | undefined;
  try {
    const place = parseConnectionTarget(url);
    const { host, port } = place;
    // Before its name is resolved.
    refuseKnownPooler(place);
    const kind = await checkHost(host, ctx.config.privateDestinations);
    const server = externalServer(url, ctx.config.privateDestinations);
    await inTime((signal) => {
      const look = async (sql: postgres.Sql, found: ServerReport) => {
        report = found;
        const over = found.link.family === undefined ? "" : `, over ${found.link.family}`;
        checks.push(ok("address", `${host}, port ${port}${over}`));
        const facts = await readFacts(sql, schema);
        await refuseOurOwn(ctx, facts);
        const reached = { url: place, kind, isOwn: false, firstMajorVersion: FIRST_REPLICA_VERSION };
        checks.push(...checkServer(found, reached));
        if (checks.some(isProblem)) return;
        checks.push(...(await judge(sql, facts)));
      };
      return probe(server, connectForCheck, look, { signal, open: openForCheck });
    });
  } catch (error) {
    checks.push(await problemOf(error, url, checks.length === 0 ? "address" : "connection"));
  }
  return { checks, report };
}

async function problemOf(
  error: unknown,
  url: string,
  check: "address" | "connection",
): Promise<DatabaseCheck> {
  const pooler = isBasetideError(error) ? undefined : poolerProblem(error, parseConnectionTarget(url));
  return pooler ?? problem(check, await connectionProblem(error, url));
}

/** As the service will, but for the check. */
function connectForCheck(url: ServerUrl, session: SessionOptions): postgres.Sql {
  return connectReplica(url, { ...session, ...CHECKING });
}

async function inTime(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const late = () => {
    controller.abort();
    throw new Error("it takes too long to answer");
  };
  await withTimeout(TOTAL_TIMEOUT_MS, late, work(controller.signal));
}

interface Facts {
  database: string;
  /** Of the session: a pooler may know it by another name. */
  role: string;
  /** Rights beyond the database's own tables. */
  wide_rights: string[];
  is_admin: boolean;
  may_create: boolean;
  has_schema: boolean;
  /** The schema, and the one in which tables are built, which belongs to the role itself. */
  has_both_schemas: boolean;
  may_use_schema: boolean;
  has_tables: boolean;
  /** Roles of the customer that default privileges allow to read our tables in the schema. */
  readers: string[];
  server: ServerIdentity;
}

async function readFacts(sql: postgres.Sql, schema: string): Promise<Facts> {
  const [facts] = await sql<Omit<Facts, "readers" | "server" | "wide_rights">[]>`
    select current_database() as database, current_user::text as role,
      rolsuper or rolcreaterole as is_admin,
      has_database_privilege(current_database(), 'CREATE') as may_create,
      n.oid is not null as has_schema,
      n.oid is not null and exists(select from pg_namespace as s where s.nspname = ${schema}::text || '_swap'
        and s.nspowner = pg_roles.oid) as has_both_schemas,
      coalesce(has_schema_privilege(n.oid, 'CREATE') and has_schema_privilege(n.oid, 'USAGE'), true)
        as may_use_schema,
      to_regnamespace(quote_ident(${schema}::text || '_swap')) is null
        and exists(select from pg_class as c where c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm'))
        as has_tables
    from pg_roles left join pg_namespace as n on n.nspname = ${schema}
    where rolname = current_user`;
  if (!facts)
    throw new BasetideError("destination_invalid", "The role is not listed in pg_roles of that server");
  return {
    ...facts,
    wide_rights: await wideRights(sql),
    readers: await readersByDefault(sql, schema),
    server: await serverIdentity(sql),
  };
}

/**
 * A URL to one of our own servers must not give access to our data: the control plane, other customers' databases.
 */
async function refuseOurOwn({ db }: InspectContext, facts: Facts): Promise<void> {
  const [own] = await db<{ database: string; is_replica: boolean }[]>`
    select current_database() as database,
      exists(select from databases where cluster_id is not null and name = ${facts.database}) as is_replica`;
  if (own?.is_replica) {
    throw new BasetideError(
      "destination_invalid",
      `The database ${facts.database} is hosted by Basetide: use the destination kind "existing"`,
    );
  }
  const isOurs = isSameServer(await serverIdentity(db), facts.server);
  if (isOurs && (facts.is_admin || own?.database === facts.database)) {
    throw new BasetideError("destination_invalid", "That server belongs to Basetide itself");
  }
}

/** Reports both at once, since the same person can grant both. */
function judgeRights(schema: string, facts: Facts, acceptsPrivileges: boolean): DatabaseCheck[] {
  return [judgeRole(schema, facts, acceptsPrivileges), judgeSchema(schema, facts)];
}

function judgeRole(schema: string, facts: Facts, acceptsPrivileges: boolean): DatabaseCheck {
  if (facts.wide_rights.length > 0) {
    return (acceptsPrivileges ? warning : problem)(
      "rights",
      `The role ${facts.role} ${facts.wide_rights.join(", ")}. Everyone who may see this URL can use these rights on the whole server`,
      `Create a role that may only create schemas: create role basetide login password '…'; grant create on database ${quoteIdent(facts.database)} to basetide;${acceptsPrivileges ? "" : " Or confirm this one (accept_privileges)"}`,
    );
  }
  if (facts.may_create) return ok("rights", `${facts.role} may create schemas`);
  if (facts.has_both_schemas)
    return ok("rights", `${facts.role} owns ${schema}_swap, and does not need the right to create schemas`);
  const message = `The role ${facts.role} is not allowed to create schemas`;
  return problem("rights", message, grantSchemas(schema, facts));
}

/** Two ways: allow the role to create schemas, or create the needed ones for it. */
function grantSchemas(schema: string, facts: Facts): string {
  const role = quoteIdent(facts.role);
  const [shown, swap] = [schema, `${schema}_swap`].map(quoteIdent);
  return `grant create on database ${quoteIdent(facts.database)} to ${role}; -- or: create schema if not exists ${shown} authorization ${role}; create schema ${swap} authorization ${role};`;
}

function judgeSchema(schema: string, facts: Facts): DatabaseCheck {
  if (!facts.may_use_schema) {
    const remedy = `grant usage, create on schema ${quoteIdent(schema)} to ${quoteIdent(facts.role)};`;
    const message = `The role ${facts.role} is not allowed to create tables in the schema ${schema}`;
    return problem("schema", message, remedy);
  }
  if (facts.readers.length > 0) {
    const roles = facts.readers.map((name) => (name === "public" ? name : quoteIdent(name))).join(", ");
    return warning(
      "schema",
      `Default privileges in the schema ${schema} will let ${facts.readers.join(", ")} read the base's tables. Use another schema if they should not`,
      `alter default privileges in schema ${quoteIdent(schema)} revoke select on tables from ${roles};`,
    );
  }
  if (facts.has_tables) {
    const message = `The schema ${schema} already contains tables. A table with the name of a table of the base would conflict`;
    return warning("schema", message);
  }
  return ok("schema", `The schema ${schema} ${facts.has_schema ? "can be used" : "will be created"}`);
}
