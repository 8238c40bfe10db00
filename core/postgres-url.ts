/**
 * Parses Postgres URLs in the forms that users have: from a provider's page, from libpq, from Prisma or from a driver's
 * docs.
 *
 * One parser for every URL and both drivers, so that a parameter means the same everywhere. A parameter that does not
 * apply to this service is dropped, and listed in `ignored` if dropping it might surprise the user.
 */

/** `prefer`: encrypted if the server offers TLS, without verifying its certificate. */
type SslMode = "disable" | "prefer" | "require" | "verify-ca" | "verify-full";

export interface PostgresUrl {
  /** A name or an IP address, without brackets. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  sslMode: SslMode;
  /** The URL's mode in our terms; absent if the URL does not say. */
  requestedSslMode: SslMode | undefined;
  /** TLS begins at once, without a request for it. */
  isDirectTls: boolean;
  /** A file with trusted authorities; absent: those that this machine trusts. */
  rootCertificate: string | undefined;
  /** Session settings in `options`, by name. */
  settings: Record<string, string>;
  /** The rest of `options`, such as a provider's `endpoint=…`; sent to the server at login. */
  options: string | undefined;
  targetSessionAttrs: string | undefined;
  /** Parameters that have no effect here, though a user may rely on them. */
  ignored: string[];
}

export const POSTGRES_PORT = 5432;
const FORM = "must have the form postgres://user:password@host:port/database, with one host";
/** A single host: no list, no socket path, no escapes. */
const HOST = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])$/i;
const LOCAL_HOST = /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/;
const NUL = "\0";

/** libpq's modes, and those added by drivers. `allow` prefers plain text, which helps no user. */
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
/** Parameters of other clients without a meaning here; dropping them changes nothing noticeable. */
const MEANT_FOR_OTHERS = new Set([
  // libpq: all drivers here use SCRAM without channel binding.
  ...["channel_binding", "application_name", "fallback_application_name", "connect_timeout", "gssencmode"],
  ...["keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"],
  ...["sslcompression", "sslsni", "client_encoding", "load_balance_hosts"],
  // Prisma, node-postgres, JDBC, asyncpg.
  ...["pgbouncer", "connection_limit", "pool_timeout", "socket_timeout", "statement_cache_size", "schema"],
  ...["uselibpqcompat", "preparethreshold", "prepared_statement_cache_size", "pool_mode", "supa"],
]);

/** @returns the problem, as a clause without a subject, if the text is not a usable URL */
export function parsePostgresUrl(text: string): PostgresUrl | string {
  const url = URL.parse(text);
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || !HOST.test(url.hostname)) return FORM;
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(plainText);
  if (user === undefined || password === undefined || database === undefined) return FORM;
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const parameters = new Map([...url.searchParams].map(([name, value]) => [name.toLowerCase(), value]));
  const requestedSslMode = readSslMode(parameters);
  if (requestedSslMode === null)
    return `has an unknown sslmode; use one of ${Object.keys(SSL_MODES).join(", ")}`;
  const attrs = parameters.get("target_session_attrs") ?? "any";
  if (!SESSION_ATTRS.includes(attrs))
    return `has an unknown target_session_attrs; use one of ${SESSION_ATTRS.join(", ")}`;
  if ([...parameters.values()].some((value) => value.includes(NUL))) return "contains the NUL character";
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

/** Returns the same URL for another client: normalized, and without the parameters that `parsePostgresUrl` drops. */
export function cleanPostgresUrl(text: string): string {
  const url = new URL(text);
  // Drivers parse the host differently: given `u:p@a,b@c`, one connects to `a` and `b`. The result is therefore written
  // from the parsed parts.
  for (const name of [...url.searchParams.keys()]) {
    if (!USED.has(name.toLowerCase())) url.searchParams.delete(name);
  }
  return url.href;
}

/** Follows libpq: the system's authorities require full verification, and a file of authorities is always used. */
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

/** Splits `options`, which Postgres reads as command-line switches, into session settings and the rest. */
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

/** Decodes a part of a URL; undefined for text that cannot be sent to a server. */
function plainText(text: string): string | undefined {
  try {
    const plain = decodeURIComponent(text);
    return plain.includes(NUL) ? undefined : plain;
  } catch {
    return undefined;
  }
}
