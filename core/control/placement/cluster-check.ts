/** Checks whether a server can be a cluster, and which limits for customers its admin can enforce. */

import type postgres from "postgres";
import { type CheckResult, problem, warning } from "../../check-result";
import type { ServerUrl } from "../../external";
import { kindOfHost } from "../../net";
import {
  CERTIFICATE_CODES,
  CONNECT_SECONDS,
  ipv6OnlyProblem,
  isConnectionError,
  isNotWritable,
  ownServer,
  probe,
  type ServerReport,
  type SessionOptions,
  WATCHED_BY_SERVER,
} from "../../postgres";
import {
  ENFORCED_SETTINGS,
  openForCheck,
  type PasswordHandling,
  passwordHandling,
  quoteIdent,
  SAFE_SEARCH_PATH,
  TEMPLATE_DATABASE,
} from "../../replica";
import { checkServer, describeServer, FIRST_REPLICA_VERSION, poolerProblem } from "./database-check";
import { readOnlyProblem } from "./database-settings";

/** What a visit of autovacuum takes in a database where it finds nothing to do, ms of CPU. */
const VISIT_MS = 4;
/** A little more than one percent of a core. */
const MOST_VISITS_PER_SECOND = 3;
/** The interval that is recommended beyond that, min: at least, and for so many databases a minute. */
const LEAST_NAPTIME_MINUTES = 5;
const VISITS_PER_MINUTE = 60;
const PREPARE = "`operator server prepare replicas` as a superuser of that server";

/** The result of checking the server of an admin URL. */
interface ClusterReport {
  /** One line about the server and the connection to it; undefined if it cannot be used at all. */
  summary: string | undefined;
  /** Problems and warnings. */
  results: CheckResult[];
}

/**
 * Checks the server at `adminUrl` for everything that prevents or weakens its use as a cluster; no results if it is
 * fine.
 */
export async function inspectCluster(adminUrl: string): Promise<ClusterReport> {
  try {
    const kind = await kindOfHost(ownServer(adminUrl).host);
    const look = async (sql: postgres.Sql, report: ServerReport) => {
      const url = ownServer(adminUrl);
      const reached = { url, kind, isOwn: true, firstMajorVersion: FIRST_REPLICA_VERSION };
      return {
        summary: describeServer(report),
        results: [...checkServer(report, reached).filter(isUnwell), ...(await checkAdmin(sql))],
      };
    };
    return await probe(adminUrl, connectAdmin, look, { open: openForCheck });
  } catch (error) {
    return { summary: undefined, results: [await unusable(adminUrl, error)] };
  }
}

async function checkAdmin(sql: postgres.Sql): Promise<CheckResult[]> {
  const readOnly = await readOnlyProblem(sql);
  if (readOnly) return [readOnly];
  const facts = await readFacts(sql);
  const missing = rightsMissing(facts);
  const passwords = missing.length === 0 ? checkPasswords(await passwordHandling(sql)) : [];
  return [
    ...missing,
    ...passwords,
    ...limitsMissing(facts),
    ...frequentVisits(facts),
    ...openDatabases(facts),
  ];
}

function connectAdmin(url: ServerUrl, session: SessionOptions): postgres.Sql {
  const options = { max: 1, connect_timeout: CONNECT_SECONDS, onnotice: () => {} };
  const connection = { search_path: SAFE_SEARCH_PATH, ...WATCHED_BY_SERVER };
  return openForCheck(url, { ...options, connection }, session);
}

function isUnwell({ severity }: CheckResult): boolean {
  return severity !== "ok";
}

async function unusable(adminUrl: string, error: unknown): Promise<CheckResult> {
  const pooler = poolerProblem(error, ownServer(adminUrl));
  if (pooler) return pooler;
  const reason = error instanceof Error ? error.message : String(error);
  const isUntrusted = CERTIFICATE_CODES.includes(String((error as { code?: unknown }).code));
  const noRoute = isConnectionError(error) ? await ipv6OnlyProblem(ownServer(adminUrl).host) : undefined;
  const remedy = isUntrusted
    ? "Correct the host, or set NODE_EXTRA_CA_CERTS to a file with the certificate authority of the server"
    : isNotWritable(error)
      ? "Use the address of the primary, or make the server accept writes again"
      : isConnectionError(error)
        ? "Start the server, or correct the host, port, user and password of its admin URL"
        : "Check the server's log";
  return problem("cluster", `Not usable: ${noRoute ?? reason}`, remedy);
}

interface Facts {
  role: string;
  is_super: boolean;
  may_create_databases: boolean;
  may_create_roles: boolean;
  has_template: boolean;
  version: number;
  /** Connections that the server reserves for the service; null before Postgres 16. */
  reserved: number | null;
  /** Databases, also of customers, that every role may connect to. */
  open: string[];
  /** Settings that the admin may not set for a role. */
  unsettable: string[];
  may_use_reserved: boolean;
  /** Whether transactions may be prepared: they outlive their session, and no limit of ours ends them. */
  may_prepare: boolean;
  /** That autovacuum visits, each once in that time; no time while it is off. */
  databases: number;
  naptime_seconds: number | null;
}

async function readFacts(sql: postgres.Sql): Promise<Facts> {
  const [facts] = await sql<Omit<Facts, "unsettable" | "may_use_reserved">[]>`
    select current_user as role, rolsuper as is_super, rolcreatedb or rolsuper as may_create_databases,
      rolcreaterole or rolsuper as may_create_roles,
      exists(select from pg_database where datname = ${TEMPLATE_DATABASE}
        and datdba = to_regrole(quote_ident(current_user))
        and shobj_description(oid, 'pg_database') is not null) as has_template,
      current_setting('server_version_num')::int / 10000 as version,
      current_setting('reserved_connections', true)::int as reserved,
      current_setting('max_prepared_transactions')::int > 0 as may_prepare,
      array(select datname::text from pg_database
        where datallowconn and has_database_privilege('public', oid, 'connect') order by 1) as open,
      (select count(*)::int from pg_database where datallowconn) as databases,
      (select nap.setting::int from pg_settings nap
        where nap.name = 'autovacuum_naptime' and current_setting('autovacuum')::boolean) as naptime_seconds
    from pg_roles where rolname = current_user`;
  const names = Object.keys(ENFORCED_SETTINGS);
  // The function exists from Postgres 15 on; before, only a superuser may set them.
  const settable =
    facts!.version < 15
      ? []
      : await sql<{ name: string }[]>`
          select name from unnest(${names}::text[]) as name where has_parameter_privilege(name, 'set')`;
  const may = new Set(facts!.is_super ? names : settable.map(({ name }) => name));
  const [reserved] =
    facts!.version < 16
      ? [{ may: false }]
      : await sql<{ may: boolean }[]>`select pg_has_role('pg_use_reserved_connections', 'usage') as may`;
  return {
    ...facts!,
    unsettable: names.filter((name) => !may.has(name)),
    may_use_reserved: reserved?.may === true,
  };
}

function rightsMissing({ role, ...may }: Facts): CheckResult[] {
  const needed = [
    { has: may.may_create_databases, what: "create databases", attribute: "createdb" },
    { has: may.may_create_roles, what: "create roles", attribute: "createrole" },
  ];
  return needed
    .filter(({ has }) => !has)
    .map(({ what, attribute }) =>
      problem(
        "cluster",
        `The role ${role} is not allowed to ${what}`,
        `alter role ${quoteIdent(role)} ${attribute}`,
      ),
    );
}

function checkPasswords(handling: PasswordHandling): CheckResult[] {
  if (handling === "verifier") return [];
  if (handling === "clear_text") {
    const remedy = "None, if you trust the provider of the server: the passwords belong to read-only roles";
    const message =
      "Does not accept password verifiers: the passwords of customers' roles are sent to it over TLS";
    return [warning("cluster", message, remedy)];
  }
  const message = "Accepts passwords only in clear text, and Basetide sends those only over TLS";
  return [problem("cluster", message, "Add sslmode=verify-full or sslmode=require to its admin URL")];
}

function limitsMissing(facts: Facts): CheckResult[] {
  const missing: CheckResult[] = [];
  const warn = (message: string, remedy: string) => missing.push(warning("cluster", message, remedy));
  if (facts.is_super) {
    warn(`Runs as the superuser ${facts.role}`, `Use a dedicated role: run ${PREPARE}`);
  }
  if (!facts.has_template && !facts.is_super) {
    warn("Customers can use PL/pgSQL and call functions that consume transaction ids", `Run ${PREPARE}`);
  }
  if (facts.unsettable.length > 0) {
    const settings = facts.unsettable.join(", ");
    const remedy =
      facts.version < 15
        ? "Upgrade to Postgres 15 or later, or set limits for the whole server"
        : `grant set on parameter ${settings} to ${quoteIdent(facts.role)}; then \`doctor --fix\``;
    warn(`Customers' roles have no limit for ${settings}`, remedy);
  }
  if (facts.may_prepare) {
    warn(
      "Readers can prepare transactions, which hold locks and old rows after their sessions have ended",
      "Set max_prepared_transactions to 0",
    );
  }
  if (facts.version >= 16 && !facts.reserved) {
    warn(
      "Reserves no connections for the service",
      "Set reserved_connections, for example to a fifth of max_connections",
    );
  } else if (facts.reserved && !facts.may_use_reserved) {
    const remedy = `grant pg_use_reserved_connections to ${quoteIdent(facts.role)}`;
    warn(`The role ${facts.role} is not allowed to use the connections that the server reserves`, remedy);
  }
  return missing;
}

function frequentVisits({ databases, naptime_seconds: seconds }: Facts): CheckResult[] {
  if (seconds === null || databases <= MOST_VISITS_PER_SECOND * seconds) return [];
  const message = `Autovacuum visits ${databases} databases every ${seconds} s, which takes about ${Math.round((databases * VISIT_MS) / seconds)} ms of CPU a second`;
  const remedy = `Unless rows of many replicas change all the time, set autovacuum_naptime to ${recommendedNaptime(databases)}: by \`alter system\`, or in the settings of the server's provider`;
  return [warning("cluster", message, remedy)];
}

/** The `autovacuum_naptime` for a server with so many databases, most of whose rows rarely change. */
export function recommendedNaptime(databases: number): string {
  return `${Math.max(LEAST_NAPTIME_MINUTES, Math.ceil(databases / VISITS_PER_MINUTE))}min`;
}

/** Reported only, because other programs may own these databases. The watchdog ends customers' sessions there. */
function openDatabases({ open }: Facts): CheckResult[] {
  return open.map((name) =>
    warning(
      "cluster",
      `Every role, including those of customers, may connect to the database ${name}`,
      `If no other program depends on this, run: revoke connect, temporary on database ${quoteIdent(name)} from public`,
    ),
  );
}
