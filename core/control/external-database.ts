/**
 * A database that a customer hosts: is it one that a replica can live in? Looked at step by step, from its address to
 * the rights there, so that whoever sets it up reads what is well and what exactly is missing.
 */
import type postgres from "postgres";
import type { Config } from "../config";
import type { Context } from "../context";
import { asBasetideError, BasetideError, isBasetideError } from "../errors";
import { ExternalServer } from "../external/server";
import { connectServer } from "../postgres-client";
import { quoteIdent } from "../replica";
import { type AddressKind, checkHost } from "./address-guard";
import { readersByDefault, settingsProblem } from "./database-settings";
import { CERTIFICATE_CODES } from "./db";
import { isSameServer, type ServerIdentity, serverIdentity } from "./server-identity";

const CONNECT_TIMEOUT_SECONDS = 10;
/** For all of it: a server that takes connections and then says nothing must not keep anybody waiting. */
const TOTAL_TIMEOUT_MS = 20_000;
const POSTGRES_PORT = 5432;
/** One host: no list of them, no socket's path, nothing escaped. */
const HOST = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])$/i;
/** What a URL may ask for; drivers take any other setting of theirs from it, and send the rest to the server. */
const PARAMETERS = new Set(["sslmode", "sslnegotiation", "options", "target_session_attrs"]);
const SSL_MODES = new Set(["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]);
const SESSION_ATTRS = new Set(["any", "read-write", "read-only", "primary", "standby", "prefer-standby"]);
const NUL = "\0";

export interface Place {
  /** The URL as every driver reads it, without what is not for a connection; to be kept, not to be connected to. */
  text: string;
  host: string;
  port: number;
  user: string;
  database: string;
  /** As the URL asks for it; absent where it does not. */
  sslMode: string | undefined;
}

export interface Finding {
  step: "address" | "connection" | "encryption" | "rights" | "schema";
  state: "ok" | "warning" | "wrong";
  message: string;
  /** SQL to run there, or what to write into the URL. */
  remedy?: string | undefined;
}

type InspectContext = Pick<Context, "config" | "db">;

/**
 * Looks at the database of `url`, and stops at the first thing that is wrong. Changes nothing there.
 *
 * @param schema a name that was checked
 */
export async function inspectExternal(ctx: InspectContext, url: string, schema: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    const place = parsePlace(url);
    const kind = await checkHost(place.host, ctx.config.privateDestinations);
    findings.push({ step: "address", state: "ok", message: `${place.host}, port ${place.port}` });
    const server = externalServer(url, ctx.config.privateDestinations);
    await withConnection(server, async (sql) => {
      const facts = await readFacts(sql, place, schema);
      await refuseOurOwn(ctx, facts);
      const settings = await settingsProblem(sql);
      findings.push({
        step: "connection",
        state: "ok",
        message: `PostgreSQL ${facts.version} takes ${facts.role}`,
      });
      const encryption = judgeEncryption(place, kind, facts);
      findings.push(encryption);
      if (encryption.state === "wrong") return;
      if (settings) findings.push({ step: "rights", state: "wrong", ...settings });
      else findings.push(...judgeRights(schema, facts));
    });
  } catch (error) {
    const step = findings.length === 0 ? "address" : "connection";
    findings.push({ step, state: "wrong", message: troubleOf(error, url) });
  }
  return findings;
}

/** @throws BasetideError `destination_invalid`, saying the first thing that is wrong and its remedy */
export function requireUsable(findings: Finding[]): void {
  const wrong = findings.find((finding) => finding.state === "wrong");
  if (!wrong) return;
  const remedy = wrong.remedy === undefined ? "" : `: ${wrong.remedy}`;
  throw new BasetideError("destination_invalid", `${wrong.message}${remedy}`);
}

/** @throws BasetideError `destination_invalid` for what is no URL of a Postgres database */
export function parsePlace(text: string): Place {
  const url = URL.parse(text);
  const [user, password, database] = [url?.username, url?.password, url?.pathname.slice(1)].map(plainText);
  if (
    !url ||
    !/^postgres(ql)?:$/.test(url.protocol) ||
    !HOST.test(url.hostname) ||
    !user ||
    password === undefined ||
    !database
  ) {
    throw new BasetideError(
      "destination_invalid",
      "The destination's URL has the form postgres://user:password@host:port/database",
    );
  }
  refuseUnknown(url, "sslmode", SSL_MODES);
  refuseUnknown(url, "target_session_attrs", SESSION_ATTRS);
  if (url.searchParams.get("options")?.includes(NUL)) {
    throw new BasetideError("destination_invalid", "options in the URL holds the character NUL");
  }
  // Drivers find the host in their own ways: of what was typed, `u:p@a,b@c`, one connects to `a` and `b`. What has
  // been parsed is written in one way only.
  for (const name of [...url.searchParams.keys()]) {
    if (!PARAMETERS.has(name)) url.searchParams.delete(name);
  }
  return {
    text: url.href,
    host: url.hostname.replace(/^\[|\]$/g, "").toLowerCase(),
    port: Number(url.port) || POSTGRES_PORT,
    user,
    database,
    sslMode: url.searchParams.get("sslmode") ?? undefined,
  };
}

/** The server of a URL, for what connects. @throws BasetideError `destination_invalid` */
export function externalServer(text: string, allowed: Config["privateDestinations"]): ExternalServer {
  const { text: normal, host, port, user, database, sslMode } = parsePlace(text);
  const url = new URL(normal);
  const parameter = (name: string) => url.searchParams.get(name) ?? undefined;
  const attrs = parameter("target_session_attrs");
  return new ExternalServer({
    host,
    port,
    user,
    database,
    password: plainText(url.password) ?? "",
    sslMode,
    sslNegotiation: parameter("sslnegotiation"),
    options: parameter("options"),
    targetSessionAttrs: attrs === "any" ? undefined : attrs,
    allowed,
  });
}

function refuseUnknown(url: URL, name: string, known: Set<string>): void {
  const value = url.searchParams.get(name);
  if (value === null || known.has(value)) return;
  throw new BasetideError("destination_invalid", `${name} in the URL is one of ${[...known].join(", ")}`);
}

/** What a part of a URL stands for; undefined for what no server can be told. */
function plainText(text: string | undefined): string | undefined {
  try {
    const plain = decodeURIComponent(text ?? "");
    return plain.includes(NUL) ? undefined : plain;
  } catch {
    return undefined;
  }
}

async function withConnection(
  server: ExternalServer,
  work: (sql: postgres.Sql) => Promise<void>,
): Promise<void> {
  const sql = connectServer(server, {
    max: 1,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    onnotice: () => {},
    connection: { application_name: "basetide" },
  });
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("it takes too long to answer")), TOTAL_TIMEOUT_MS);
  try {
    await Promise.race([work(sql), timeout]);
  } finally {
    clearTimeout(timer);
    await sql.end({ timeout: 1 });
  }
}

interface Facts {
  database: string;
  /** Of the session: a pooler may take another name for it. */
  role: string;
  version: string;
  is_super: boolean;
  is_admin: boolean;
  may_create: boolean;
  has_schema: boolean;
  may_use_schema: boolean;
  has_tables: boolean;
  is_encrypted: boolean;
  /** Roles of theirs that default privileges let read what we make in the schema. */
  readers: string[];
  server: ServerIdentity;
}

async function readFacts(sql: postgres.Sql, place: Place, schema: string): Promise<Facts> {
  const [facts] = await sql<Omit<Facts, "readers" | "server">[]>`
    select current_database() as database, current_user::text as role, current_setting('server_version') as version,
      rolsuper as is_super, rolsuper or rolcreaterole as is_admin,
      has_database_privilege(current_database(), 'CREATE') as may_create,
      n.oid is not null as has_schema,
      coalesce(has_schema_privilege(n.oid, 'CREATE') and has_schema_privilege(n.oid, 'USAGE'), true)
        as may_use_schema,
      to_regnamespace(quote_ident(${schema}::text || '_swap')) is null
        and exists(select from pg_class as c where c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm'))
        as has_tables,
      coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as is_encrypted
    from pg_roles left join pg_namespace as n on n.nspname = ${schema}
    where rolname = current_user`;
  if (!facts) throw new BasetideError("destination_invalid", `The role ${place.user} is not listed there`);
  return { ...facts, readers: await readersByDefault(sql, schema), server: await serverIdentity(sql) };
}

/** A URL into one of our own servers must not open what is ours: the control plane, other customers' databases. */
async function refuseOurOwn({ db }: InspectContext, facts: Facts): Promise<void> {
  const [own] = await db<{ database: string; is_replica: boolean }[]>`
    select current_database() as database,
      exists(select from databases where cluster_id is not null and name = ${facts.database}) as is_replica`;
  if (own?.is_replica) {
    throw new BasetideError(
      "destination_invalid",
      `The database ${facts.database} is hosted here: use the destination kind "existing"`,
    );
  }
  const isOurs = isSameServer(await serverIdentity(db), facts.server);
  if (isOurs && (facts.is_admin || own?.database === facts.database)) {
    throw new BasetideError("destination_invalid", "That server belongs to the service itself");
  }
}

/** Over the open internet the password and every row would be read along; who wants that says so in the URL. */
function judgeEncryption(place: Place, kind: AddressKind, facts: Facts): Finding {
  if (facts.is_encrypted) {
    const isChecked = place.sslMode?.startsWith("verify-") === true;
    const message = isChecked
      ? "The connection is encrypted, and the server's certificate is checked"
      : "The connection is encrypted; with sslmode=verify-full the server's certificate is checked too";
    return { step: "encryption", state: "ok", message };
  }
  const message = "The connection is not encrypted";
  if (kind !== "public" || place.sslMode === "disable") {
    return { step: "encryption", state: "warning", message };
  }
  return { step: "encryption", state: "wrong", message, remedy: "add ?sslmode=require to the URL" };
}

/** Both are said at once: whoever may grant the one may grant the other. */
function judgeRights(schema: string, facts: Facts): Finding[] {
  return [judgeRole(facts), judgeSchema(schema, facts)];
}

function judgeRole(facts: Facts): Finding {
  if (!facts.may_create) {
    return {
      step: "rights",
      state: "wrong",
      message: `The role ${facts.role} may not create schemas`,
      remedy: `grant create on database ${quoteIdent(facts.database)} to ${quoteIdent(facts.role)};`,
    };
  }
  if (facts.is_super) {
    const message = `${facts.role} is a superuser; a role that may create schemas is enough`;
    return { step: "rights", state: "warning", message };
  }
  return { step: "rights", state: "ok", message: `${facts.role} may create schemas` };
}

function judgeSchema(schema: string, facts: Facts): Finding {
  if (!facts.may_use_schema) {
    return {
      step: "schema",
      state: "wrong",
      message: `The role ${facts.role} may not create tables in the schema ${schema}`,
      remedy: `grant usage, create on schema ${quoteIdent(schema)} to ${quoteIdent(facts.role)};`,
    };
  }
  if (facts.readers.length > 0) {
    const roles = facts.readers.map((name) => (name === "public" ? name : quoteIdent(name))).join(", ");
    return {
      step: "schema",
      state: "warning",
      message: `Default privileges in the schema ${schema} will let ${facts.readers.join(", ")} read the base's tables: take another schema if they should not`,
      remedy: `alter default privileges in schema ${quoteIdent(schema)} revoke select on tables from ${roles};`,
    };
  }
  if (facts.has_tables) {
    const message = `The schema ${schema} has tables of yours: one with the name of a table of the base is in the way`;
    return { step: "schema", state: "warning", message };
  }
  const message = facts.has_schema
    ? `The schema ${schema} can be used`
    : `The schema ${schema} will be created`;
  return { step: "schema", state: "ok", message };
}

/** What the role may not do: to connect, where the server refused the login, or what the server says otherwise. */
function denial(error: unknown, grantConnect: string): string {
  const { severity, message } = error as { severity?: string; message?: string };
  if (severity === "ERROR") return `The role lacks a right that Basetide needs there: ${message}`;
  return `The role may not connect to the database: ${grantConnect}`;
}

function untrusted(host: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `The certificate of the server at ${host} cannot be trusted: ${reason}. With sslmode=require it is not checked`;
}

/** What went wrong, in words that say what to look at. */
function troubleOf(error: unknown, url: string): string {
  if (isBasetideError(error)) return error.message;
  const { host, port, user, database } = parsePlace(url);
  const code = String((error as { code?: unknown }).code ?? "");
  const unreachable = `The database at ${host} cannot be reached:`;
  const known: Record<string, string> = {
    ECONNREFUSED: `${unreachable} nothing listens on port ${port}`,
    CONNECT_TIMEOUT: `${unreachable} port ${port} does not answer; does a firewall keep us out?`,
    CONNECTION_CLOSED: `${unreachable} the connection was closed at once; does it need ?sslmode=require?`,
    ENOTFOUND: `${unreachable} nobody knows that name`,
    ...Object.fromEntries(CERTIFICATE_CODES.map((known) => [known, untrusted(host, error)])),
    "28P01": `The server refuses the password of ${user}`,
    "28000": `The server refuses ${user} from our address (pg_hba.conf), or wants ?sslmode=require`,
    "3D000": `There is no database ${database} on that server`,
    "42501": denial(error, `grant connect on database ${quoteIdent(database)} to ${quoteIdent(user)}`),
    "53300": "The server has no free connection",
  };
  return known[code] ?? `The database at ${host} cannot be used: ${asBasetideError(error).message}`;
}
