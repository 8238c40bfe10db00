/**
 * Postgres URLs as people have them: copied from a provider's page, from libpq, from Prisma or from a driver's docs.
 *
 * One parser for every URL and both drivers, so that a parameter means the same in each place. A parameter that is not
 * for this service is dropped, and named in `ignored` where leaving it out could surprise.
 */

/** `prefer`: encrypted where the server offers TLS, without checking its certificate. */
export type SslMode = "disable" | "prefer" | "require" | "verify-ca" | "verify-full";

export interface PostgresUrl {
  /** A name or an IP address, without brackets. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  sslMode: SslMode;
  /** As the URL asks for it, in our words; absent where it leaves that open. */
  requestedSslMode: SslMode | undefined;
  /** TLS begins at once, without asking for it. */
  isDirectTls: boolean;
  /** A file with the authorities to trust; absent: those that this machine trusts. */
  rootCertificate: string | undefined;
  /** Of `options`: settings of the session, by name. */
  settings: Record<string, string>;
  /** Of `options`: what is no setting, such as a provider's `endpoint=…`; goes to the server at login. */
  options: string | undefined;
  targetSessionAttrs: string | undefined;
  /** Parameters that have no effect here, though somebody may count on them. */
  ignored: string[];
}

const POSTGRES_PORT = 5432;
const FORM = "has the form postgres://user:password@host:port/database, with one host";
/** One host: no list of them, no socket's path, nothing escaped. */
const HOST = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])$/i;
const LOCAL_HOST = /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/;
const NUL = "\0";

/** libpq's modes, and those that drivers have added. `allow` prefers plain text, which no one is served by. */
const SSL_MODES: Record<string, SslMode> = {
  disable: "disable",
  allow: "prefer",
  prefer: "prefer",
  require: "require",
  "no-verify": "require",
  "verify-ca": "verify-ca",
  "verify-full": "verify-full",
};
const SESSION_ATTRS = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"];
const USED = new Set([
  ...["sslmode", "ssl", "sslnegotiation", "sslrootcert", "options", "target_session_attrs"],
]);
/** Of other clients, and without a meaning for this one; leaving them out changes nothing that anybody would notice. */
const MEANT_FOR_OTHERS = new Set([
  // libpq: SCRAM without channel binding is what every driver here speaks.
  ...["channel_binding", "application_name", "fallback_application_name", "connect_timeout", "gssencmode"],
  ...["keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"],
  ...["sslcompression", "sslsni", "client_encoding", "load_balance_hosts"],
  // Prisma, node-postgres, JDBC, asyncpg.
  ...["pgbouncer", "connection_limit", "pool_timeout", "socket_timeout", "statement_cache_size", "schema"],
  ...["uselibpqcompat", "preparethreshold", "prepared_statement_cache_size", "pool_mode", "supa"],
]);

/** @returns what is wrong with the text, as a clause without a subject, where it is no URL that can be used */
export function parsePostgresUrl(text: string): PostgresUrl | string {
  const url = URL.parse(text);
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || !HOST.test(url.hostname)) return FORM;
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(plainText);
  if (user === undefined || password === undefined || database === undefined) return FORM;
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const parameters = new Map([...url.searchParams].map(([name, value]) => [name.toLowerCase(), value]));
  const requestedSslMode = readSslMode(parameters);
  if (requestedSslMode === null)
    return `has an unknown sslmode: take one of ${Object.keys(SSL_MODES).join(", ")}`;
  const attrs = parameters.get("target_session_attrs") ?? "any";
  if (!SESSION_ATTRS.includes(attrs))
    return `has an unknown target_session_attrs: take one of ${SESSION_ATTRS.join(", ")}`;
  if ([...parameters.values()].some((value) => value.includes(NUL))) return "holds the character NUL";
  const options = readOptions(parameters.get("options") ?? "");
  const rootCertificate = parameters.get("sslrootcert");
  const isDirectTls = parameters.get("sslnegotiation") === "direct";
  return {
    host,
    port: Number(url.port) || POSTGRES_PORT,
    user,
    password,
    database,
    requestedSslMode,
    sslMode: requestedSslMode ?? (isDirectTls ? "require" : LOCAL_HOST.test(host) ? "disable" : "prefer"),
    isDirectTls,
    rootCertificate: rootCertificate === "system" ? undefined : rootCertificate,
    ...options,
    targetSessionAttrs: attrs === "any" ? undefined : attrs,
    ignored: [...parameters.keys()].filter((name) => !USED.has(name) && !MEANT_FOR_OTHERS.has(name)).sort(),
  };
}

/** The same URL for another client: written in one way only, and without what `parsePostgresUrl` drops. */
export function cleanPostgresUrl(text: string): string {
  const url = new URL(text);
  // Drivers find the host in their own ways: of what was typed, `u:p@a,b@c`, one connects to `a` and `b`. What has
  // been parsed is written in one way only.
  for (const name of [...url.searchParams.keys()]) {
    if (!USED.has(name.toLowerCase())) url.searchParams.delete(name);
  }
  return url.href;
}

/** As libpq reads them: the system's authorities are for whole checks, and a file of authorities is there to be used. */
function readSslMode(parameters: Map<string, string>): SslMode | undefined | null {
  const asked =
    parameters.get("sslmode") ??
    (/^(true|1|require)$/.test(parameters.get("ssl") ?? "") ? "require" : undefined);
  const root = parameters.get("sslrootcert");
  if (asked !== undefined && SSL_MODES[asked] === undefined) return null;
  const mode = asked === undefined ? undefined : SSL_MODES[asked];
  if (root === "system") return "verify-full";
  if (root !== undefined && (mode === undefined || mode === "require")) return "verify-ca";
  return mode;
}

/** Takes apart what Postgres would read as command-line switches: settings of the session, and the rest. */
function readOptions(text: string): Pick<PostgresUrl, "settings" | "options"> {
  const words = [...text.matchAll(/(?:\\.|[^\s\\])+/g)].map(([word]) => word.replace(/\\(.)/g, "$1"));
  const settings: Record<string, string> = {};
  const rest: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const given = word === "-c" ? words[++at] : (/^(?:-c|--)(.+)$/.exec(word)?.[1] ?? undefined);
    const [, name, value] = /^([a-z_][a-z0-9_.-]*)=(.*)$/i.exec(given ?? "") ?? [];
    if (name === undefined) rest.push(word.replace(/([\s\\])/g, "\\$1"));
    else settings[name.replaceAll("-", "_").toLowerCase()] = value!;
  }
  return { settings, options: rest.length === 0 ? undefined : rest.join(" ") };
}

/** What a part of a URL stands for; undefined for what no server can be told. */
function plainText(text: string): string | undefined {
  try {
    const plain = decodeURIComponent(text);
    return plain.includes(NUL) ? undefined : plain;
  } catch {
    return undefined;
  }
}
