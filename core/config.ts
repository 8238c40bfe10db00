/**
 * The configuration: environment variables, read and validated with zod once at the start.
 *
 * `readConfig` fails with one error that names every invalid variable. The table of `docs/configuration.md` is
 * generated from `configVariables`.
 */
import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";
import { type CamelCase, toCamelCase } from "./camel-case";
import { BasetideError } from "./errors";
import { parsePostgresUrl } from "./postgres-url";

// Without a text of their own, errors have the library's, of which its small form loads none by itself.
z.config(en());

const integer = (least: number, most = Number.POSITIVE_INFINITY) =>
  z.coerce.number().check(z.int(), z.minimum(least), z.maximum(most));
const port = integer(0, 65535);
// A host name is rejected: it would be resolved, and tcsh sets HOST to the machine's name, whose address must not be
// exposed by accident.
const bindAddress = z
  .string()
  .check(
    z.refine(
      (text) => text === "localhost" || isIP(text) !== 0,
      "must be an IP address (0.0.0.0 for all IPv4 interfaces)",
    ),
  );
const seconds = z.coerce.number().check(z.positive());
const postgresUrl = z.string().check(
  // An invalid URL must not reach another parser, whose error would quote it whole, including its password.
  z.superRefine((text, check) => {
    const parsed = parsePostgresUrl(text);
    if (typeof parsed === "string")
      check.addIssue(`the URL ${parsed}; escape what is special in its password (%2F for /)`);
  }),
);
const httpUrl = z.pipe(
  z.url({ protocol: /^https?$/, error: "must be an http(s) URL" }),
  z.transform((url) => url.replace(/\/+$/, "")),
);

/** `host=address,host=address`. */
const upstreams = z.pipe(
  z.string().check(
    z.superRefine((text, check) => {
      const wrong = parts(text).find((entry) => upstreamOf(entry) === undefined);
      if (wrong !== undefined) check.addIssue(`"${wrong}" is not host=http(s)://address`);
    }),
  ),
  z.transform((text) => Object.fromEntries(parts(text).map((entry) => upstreamOf(entry)!))),
);

/** @returns the host and its address */
function upstreamOf(entry: string): [host: string, address: string] | undefined {
  const [host, address] = [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)];
  const isValid =
    /^[a-z0-9.-]+$/i.test(host) && /^https?:\/\/[^/\\@?#]+\/?$/.test(address) && URL.canParse(address);
  return isValid ? [host.toLowerCase(), address.replace(/\/$/, "")] : undefined;
}

/** The parts of a list with commas. */
const parts = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

const isSecretKey = (text: string) => Buffer.from(text, "base64").length === 32;
const secretKey = z.string().check(z.refine(isSecretKey, "must be 32 bytes in base64"));
const secretKeys = z.pipe(
  z.string().check(
    z.superRefine((text, check) => {
      // The message gives the position of the invalid key: an error must not contain a key.
      const wrong = parts(text).findIndex((key) => !isSecretKey(key));
      if (wrong >= 0) check.addIssue(`key ${wrong + 1} is not 32 bytes in base64`);
    }),
  ),
  z.transform(parts),
);
const text = z.string().check(z.minLength(1));

/** The region code of a cluster whose operator has not said where it is. */
const USUAL_REGION = "us-west-2";

/** Every variable: its validation, its default as documented, and its meaning. */
export const configVariables = {
  /** Absent: the embedded server, whose URL `apps/up` fills in. */
  DATABASE_URL: {
    check: z.optional(postgresUrl),
    shown: "embedded",
    meaning: "control-plane Postgres",
  },
  REPLICA_URL: {
    check: z.optional(postgresUrl),
    shown: "the control plane's server",
    meaning:
      "admin URL of the default replica cluster: a role that may create databases and roles, and is not a superuser",
  },
  SUPERUSER_URL: {
    check: z.optional(postgresUrl),
    shown: "unset",
    meaning:
      "a superuser's URL for `operator server prepare`, which creates the roles of `DATABASE_URL` and `REPLICA_URL`; no other process reads it",
  },
  DATABASE_CONNECTIONS: {
    check: z._default(integer(1, 10_000), 10),
    meaning: "maximum number of connections of the role of a new hosted database",
  },
  DATABASE_SQL_USERS: {
    check: z._default(integer(0, 1000), 20),
    meaning: "maximum number of [SQL users](sql.md#sql-users) of one hosted database",
  },
  ACCOUNT_DATABASES: {
    check: z._default(integer(1), 1000),
    meaning: "maximum number of hosted databases per account",
  },
  ACCOUNT_CONNECTIONS: {
    check: z._default(integer(1), 200),
    meaning:
      "maximum number of open connections of one account's roles on a cluster; the watchdog ends the newest ones above it",
  },
  CONNECTION_OVERCOMMIT: {
    check: z._default(z.coerce.number().check(z.minimum(1)), 20),
    meaning:
      "ratio of the connection limits of all customers' roles on a cluster to its available connections; at 1, the roles together can never use all connections, and the cluster holds fewer databases",
  },
  REPLICA_PUBLIC_HOST: {
    check: z.optional(text),
    shown: "host of `REPLICA_URL`",
    meaning: "host that customers see",
  },
  DEFAULT_REGION: {
    check: z.optional(text),
    shown: `\`${USUAL_REGION}\`, which no page shows`,
    meaning:
      "region code of the default cluster. Pages name it where they say where data lies; without it, they say so only for the embedded Postgres",
  },
  UPSTREAMS: {
    check: z.prefault(
      upstreams,
      "api.airtable.com=https://api.airtable.com,content.airtable.com=https://content.airtable.com",
    ),
    shown: "`api.airtable.com` and `content.airtable.com`, over https",
    meaning: "allowed upstream hosts, and the address of each: `host=address,…`",
  },
  CONSOLE_PORT: { check: z._default(port, 3000), meaning: "port of the console and the management API" },
  PROXY_PORT: { check: z._default(port, 4000), meaning: "port of the proxy" },
  CONNECT_PORT: {
    check: z.optional(port),
    shown: "unset: off",
    meaning:
      "port for CONNECT requests to the hosts of `UPSTREAMS`, for programs that support only an HTTPS proxy; they must trust `connect-ca.pem` in `DATA_DIR`",
  },
  CONNECT_HOST: {
    check: z._default(bindAddress, "127.0.0.1"),
    meaning: "IP address that `CONNECT_PORT` listens on",
  },
  WRITE_PORT: {
    check: z.optional(port),
    shown: "unset: off",
    meaning:
      "port of the proxy's endpoint for [SQL writes](sql-writes.md), which the replicas' servers connect to; [queued](sql-writes.md#where-the-server-cannot-connect-back) ones need none",
  },
  WRITE_HOST: {
    check: z.optional(z.string().check(z.regex(/^[a-z0-9.:-]+$/i, "must be a host name or an IP address"))),
    shown: "host of `PROXY_URL`",
    meaning: "host at which the replicas' servers reach `WRITE_PORT`",
  },
  WRITE_TLS_CERTIFICATE: {
    check: z.optional(text),
    shown: "unset: `WRITE_PORT` is without TLS",
    meaning: "file with the certificate of `WRITE_PORT`, PEM; connections without TLS are refused then",
  },
  WRITE_TLS_KEY: {
    check: z.optional(text),
    shown: "unset",
    meaning:
      "file with the key of that certificate, PEM. The console needs both variables, too: it tells replicas to use TLS",
  },
  SANDBOX_PORT: { check: z._default(port, 4100), meaning: "port of the sandbox" },
  WORKER_PORT: { check: z._default(port, 4200), meaning: "port of a worker's health and metrics" },
  HOST: {
    check: z.optional(bindAddress),
    shown: "all interfaces; `127.0.0.1` for `bun run up`",
    meaning:
      "IP address that the console, proxy and worker listen on (`0.0.0.0`: every IPv4 interface); the sandbox always listens on `127.0.0.1`",
  },
  METRICS_PORT: {
    check: z.optional(port),
    shown: "unset: `/metrics` is on each process's own port, for requests from this machine only",
    meaning:
      "port of `/metrics`, instead of the process's own port; one for all roles of `bun run up` and of the role `all`",
  },
  METRICS_HOST: {
    check: z.optional(bindAddress),
    shown: "value of `HOST`",
    meaning: "IP address that `METRICS_PORT` listens on",
  },
  CONSOLE_URL: {
    check: z.optional(httpUrl),
    shown: "`http://localhost:CONSOLE_PORT`",
    meaning: "public address of the console, used in pages and attachment links; the same for all processes",
  },
  PROXY_URL: {
    check: z.optional(httpUrl),
    shown: "`http://localhost:PROXY_PORT`",
    meaning: "public address of the proxy, used in snippets",
  },
  /** Absent until `core/secrets` has loaded or created it. */
  SECRET_KEY: {
    check: z.optional(secretKey),
    shown: "generated at the first start and stored in `DATA_DIR`; required if `NODE_ENV=production`",
    meaning: "32 bytes in base64; encrypts API keys and database passwords at rest",
  },
  SECRET_KEY_PREVIOUS: {
    check: z.optional(secretKeys),
    shown: "unset",
    meaning:
      "comma-separated keys that only decrypt: earlier values of `SECRET_KEY`, and, during a rotation, the next one",
  },
  TARGET_SECRET_KEY: {
    check: z.optional(secretKey),
    shown: "unset",
    meaning:
      "the `SECRET_KEY` of the control plane that `operator account move` moves an account to; no other process reads it",
  },
  SMTP_URL: {
    check: z.optional(
      z.string().check(
        z.regex(/^smtps?:\/\/./, "must be an SMTP URL (smtp://user:password@host:port)"),
        z.refine(
          (url) => URL.canParse(url),
          "must be an SMTP URL, with what is special in its password escaped",
        ),
      ),
    ),
    shown: "unset: no mail is sent",
    meaning:
      "mail server for confirming addresses, resetting passwords, invitations and alerts; without one, mails go to the log, or are dropped if `NODE_ENV=production` (use `bun run operator account reset-link` there)",
  },
  MAIL_FROM: {
    check: z._default(z.string().check(z.minLength(3)), "Basetide <basetide@localhost>"),
    meaning: "sender of those mails",
  },
  CLIENT_IP_HEADER: {
    check: z.optional(
      z.string().check(z.regex(/^[a-z0-9-]+$/i, "must be the name of a header"), z.toLowerCase()),
    ),
    shown: "unset: the connection's own address",
    meaning:
      "header in which a reverse proxy sends the client's address (the last entry counts). Set it behind a reverse proxy; otherwise all clients share one address, by which sign-in attempts, mails, API calls, and the proxy's calls with new keys are limited",
  },
  API_REQUESTS_PER_MINUTE: {
    check: z._default(integer(1), 600),
    meaning: "maximum number of management API calls per token and console; four times that per address",
  },
  SIGN_UPS: {
    check: z._default(z.enum(["open", "closed"]), "open"),
    meaning:
      "`closed`: after the first account, only people who were invited, or added by the operator, get one; the installation serves one organization",
  },
  GOOGLE_CLIENT_ID: {
    check: z.optional(z.string()),
    shown: "unset: no sign-in with Google",
    meaning: "id of an OAuth client at Google, with the redirect address `CONSOLE_URL/auth/callback/google`",
  },
  GOOGLE_CLIENT_SECRET: {
    check: z.optional(z.string()),
    shown: "unset",
    meaning: "its secret",
  },
  OIDC_ISSUER: {
    check: z.optional(httpUrl),
    shown: "unset: no sign-in with OpenID Connect",
    meaning:
      "issuer of an OpenID Connect provider that people may sign in with; it must publish `/.well-known/openid-configuration` and state that addresses are verified",
  },
  OIDC_CLIENT_ID: {
    check: z.optional(z.string()),
    shown: "unset",
    meaning: "id of the client there, with the redirect address `CONSOLE_URL/auth/callback/oidc`",
  },
  OIDC_CLIENT_SECRET: {
    check: z.optional(z.string()),
    shown: "unset",
    meaning: "its secret",
  },
  OIDC_NAME: {
    check: z._default(z.string().check(z.maxLength(40)), "single sign-on"),
    meaning: "name of that provider on the sign-in page",
  },
  ALLOW_PRIVATE_DESTINATIONS: {
    check: z.optional(z.enum(["no", "loopback", "yes"])),
    shown: "`yes` if `SIGN_UPS=closed`; else `loopback`, or `no` if `NODE_ENV=production`",
    meaning:
      "whether a customer's own database or alert webhook may be in a private network (`yes`) or on this machine (`loopback`); link-local addresses are never allowed",
  },
  LIVE_PINGS: {
    check: z._default(z.enum(["auto", "on", "off"]), "auto"),
    meaning:
      "whether Airtable notifies the console at `CONSOLE_URL` of changes (live mode). `auto`: if that address is on the internet, or the Airtable API is in a private network as well; `off`: Basetide polls",
  },
  WORKER_CONCURRENCY: {
    check: z._default(integer(1, 10_000), 200),
    meaning: "maximum number of bases that one worker syncs at once",
  },
  WORKER_FINGERPRINTS_MB: {
    check: z._default(integer(1), 256),
    meaning:
      "maximum memory of a worker for the [fingerprints](memory.md) of records, 16 bytes each; beyond it, those of the tables that are swept least often are dropped",
  },
  UPSTREAM_TIMEOUT_MS: {
    check: z._default(integer(100), 30_000),
    meaning: "maximum wait for Airtable; after it, the proxy answers 504",
  },
  SCHEMA_POLL_SECONDS: {
    check: z._default(seconds, 60),
    meaning: "maximum time between two schema checks of a base",
  },
  DATA_DIR: {
    check: z._default(text, ".data"),
    meaning: "folder for embedded Postgres and the secret key",
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    check: z.optional(httpUrl),
    shown: "unset: no traces",
    meaning: "collector that OpenTelemetry traces are sent to, over HTTP",
  },
  LOG_LEVEL: {
    check: z._default(z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]), "info"),
    shown: "`info`; `warn` for `bun run up`",
    meaning: "minimum level that is logged",
  },
  NODE_ENV: {
    check: z._default(z.string(), "development"),
    meaning: "`production`: a process does not generate a secret key",
  },
} as const satisfies Record<string, { check: z.ZodMiniType; shown?: string; meaning: string }>;

/** The variables as they are read, `CONSOLE_PORT` as `consolePort`. Absent ones are `undefined`. */
type Variables = {
  -readonly [Name in keyof typeof configVariables as CamelCase<Lowercase<Name>>]: z.infer<
    (typeof configVariables)[Name]["check"]
  >;
};

/** Variables that other properties of the configuration stand for. */
type Converted =
  | "defaultRegion"
  | "secretKeyPrevious"
  | "allowPrivateDestinations"
  | "schemaPollSeconds"
  | "otelExporterOtlpEndpoint"
  | "googleClientId"
  | "googleClientSecret"
  | "oidcIssuer"
  | "oidcClientId"
  | "oidcClientSecret"
  | "oidcName"
  | "nodeEnv";

/** An OpenID Connect provider that people may sign in with. */
export interface SignInProvider {
  /** Part of the redirect address. */
  id: "google" | "oidc";
  name: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
}

export interface Config extends Omit<Variables, Converted> {
  defaultRegion: string;
  /** What pages say of where the data of the default cluster lies; null: nothing. */
  location: string | null;
  consoleUrl: string;
  proxyUrl: string;
  /** Base64 of 32 bytes: they decrypt, but no longer encrypt. */
  previousSecretKeys: string[];
  privateDestinations: "no" | "loopback" | "yes";
  signInProviders: SignInProvider[];
  schemaPollMs: number;
  /** Absent: no traces. */
  otlpEndpoint: string | undefined;
  isProduction: boolean;
}

/**
 * Reads and validates the whole environment. A variable that is not set is read from the file of its name in
 * CREDENTIALS_DIRECTORY, if there is one: systemd passes secrets that way.
 *
 * @throws BasetideError `config_invalid`, naming every invalid variable. An empty value counts as unset.
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const read: Record<string, unknown> = {};
  const wrong: string[] = [];
  for (const [name, variable] of Object.entries(configVariables)) {
    const result = variable.check.safeParse(env[name] || credential(env.CREDENTIALS_DIRECTORY, name));
    if (result.success) read[toCamelCase(name.toLowerCase())] = result.data;
    else wrong.push(`${name}: ${result.error.issues.map((issue) => issue.message).join("; ")}`);
  }
  wrong.push(...incompleteGroups(read as Variables));
  if (wrong.length > 0) throw new BasetideError("config_invalid", `Configuration: ${wrong.join(" | ")}`);
  const {
    consoleUrl = `http://localhost:${read.consolePort}`,
    proxyUrl = `http://localhost:${read.proxyPort}`,
    defaultRegion,
    secretKeyPrevious = [],
    allowPrivateDestinations,
    schemaPollSeconds,
    otelExporterOtlpEndpoint,
    nodeEnv,
    googleClientId,
    googleClientSecret,
    oidcIssuer,
    oidcClientId,
    oidcClientSecret,
    oidcName,
    ...named
  } = read as Variables;
  const isProduction = nodeEnv === "production";
  return {
    ...named,
    defaultRegion: defaultRegion ?? USUAL_REGION,
    location: defaultRegion ?? null,
    consoleUrl,
    proxyUrl,
    previousSecretKeys: secretKeyPrevious,
    privateDestinations: allowPrivateDestinations ?? privateDestinationsFor(named.signUps, isProduction),
    signInProviders: [
      ...(googleClientId && googleClientSecret
        ? [
            {
              id: "google" as const,
              name: "Google",
              issuer: "https://accounts.google.com",
              clientId: googleClientId,
              clientSecret: googleClientSecret,
            },
          ]
        : []),
      ...(oidcIssuer && oidcClientId && oidcClientSecret
        ? [
            {
              id: "oidc" as const,
              name: oidcName,
              issuer: oidcIssuer,
              clientId: oidcClientId,
              clientSecret: oidcClientSecret,
            },
          ]
        : []),
    ],
    schemaPollMs: schemaPollSeconds * 1000,
    otlpEndpoint: otelExporterOtlpEndpoint,
    isProduction,
  };
}

/** @returns undefined if there is no such file, or if it is empty */
function credential(folder: string | undefined, name: string): string | undefined {
  const path = folder ? join(folder, name) : "";
  if (!path || !existsSync(path)) return undefined;
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch (cause) {
    throw new BasetideError(
      "config_invalid",
      `${name}: ${path} cannot be read; check its owner and its mode`,
      {
        cause,
      },
    );
  }
}

/** A provider, and the certificate of a port, need all of their variables, or none. */
function incompleteGroups(read: Partial<Variables>): string[] {
  const groups = {
    GOOGLE: [read.googleClientId, read.googleClientSecret],
    OIDC: [read.oidcIssuer, read.oidcClientId, read.oidcClientSecret],
    WRITE_TLS: [read.writeTlsCertificate, read.writeTlsKey],
  };
  const variables = {
    GOOGLE: "GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET",
    OIDC: "OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET",
    WRITE_TLS: "WRITE_TLS_CERTIFICATE and WRITE_TLS_KEY",
  };
  return Object.entries(groups).flatMap(([name, values]) => {
    const given = values.filter((value) => value !== undefined).length;
    if (given === 0 || given === values.length) return [];
    return [`${variables[name as keyof typeof variables]} must be set together`];
  });
}

/**
 * With open sign-ups, strangers must not use the service to reach into its network. With closed ones, that network is
 * where databases are.
 */
function privateDestinationsFor(
  signUps: Config["signUps"],
  isProduction: boolean,
): Config["privateDestinations"] {
  if (signUps === "closed") return "yes";
  return isProduction ? "no" : "loopback";
}
