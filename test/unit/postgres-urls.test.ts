/** Postgres URLs as providers and other tools write them: one parser, one meaning. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { ipv6OnlyProblem, knownTransactionPooler, sessionRemedy } from "../../core/postgres";
import { platformOf } from "../../core/postgres/platform";
import { cleanPostgresUrl, type PostgresUrl, parsePostgresUrl } from "../../core/postgres-url";
import { anyText, fuzz } from "../support/fuzz";

function parsed(text: string): PostgresUrl {
  const url = parsePostgresUrl(text);
  if (typeof url === "string") throw new Error(url);
  return url;
}

test.for<[string, Partial<PostgresUrl>]>([
  ["channel_binding=require&sslmode=require", { sslMode: "require", ignored: [] }],
  ["pgbouncer=true&connection_limit=1", { sslMode: "prefer", ignored: [] }],
  ["sslrootcert=system", { sslMode: "verify-full", rootCertificate: undefined }],
  ["sslmode=require&sslrootcert=/ca.pem", { sslMode: "verify-ca", rootCertificate: "/ca.pem" }],
  ["sslmode=no-verify", { sslMode: "require" }],
  ["ssl=true", { sslMode: "require" }],
  ["sslmode=allow", { sslMode: "prefer" }],
  ["sslnegotiation=direct", { sslMode: "require", isDirectTls: true }],
  ["sslcert=/a.pem&max=1000&application_name=x", { ignored: ["max", "sslcert"] }],
  [
    `options=${encodeURIComponent("-c search_path=a,b -cstatement_timeout=5s --lock-timeout=1 endpoint=ep-cool")}`,
    {
      settings: { search_path: "a,b", statement_timeout: "5s", lock_timeout: "1" },
      options: "endpoint=ep-cool",
    },
  ],
  [`options=${encodeURIComponent("-c a=x\\ y\\\\z")}`, { settings: { a: "x y\\z" }, options: undefined }],
])("a URL with ?%s is accepted", ([query, expected]) => {
  expect(parsed(`postgres://u:p@db.example/x?${query}`)).toMatchObject(expected);
});

test("without sslmode the connection is encrypted where the server offers it, except to this machine", () => {
  for (const host of ["localhost", "127.0.0.1", "[::1]"])
    expect(parsed(`postgres://u:p@${host}/x`).sslMode).toBe("disable");
  for (const host of ["db.example", "10.0.0.1", "[2a05:d014::1]"])
    expect(parsed(`postgres://u:p@${host}/x`).sslMode).toBe("prefer");
});

test("IPv6 literals are hosts like others", () => {
  expect(parsed("postgres://u:p@[2a05:d014:1c06:5f00::1]:6000/db")).toMatchObject({
    host: "2a05:d014:1c06:5f00::1",
    port: 6000,
  });
});

test.for([
  "postgres://a,b/db",
  "postgres://u:p@a:1,b:2/db",
  "mysql://u:p@a/db",
  "postgres://u:%zz@a/db",
  "postgres://u:p@a/db?sslmode=maybe",
  "postgres://u:p@a/db?options=%00",
])("%s is refused with a reason", (text) => {
  expect(typeof parsePostgresUrl(text)).toBe("string");
});

fuzz(
  "any text is accepted or refused, and the stored URL has the same meaning",
  300,
  fc.property(
    anyText,
    fc.constantFrom(
      "",
      "sslmode=require",
      "ssl=1",
      "pgbouncer=true",
      "options=-c%20a%3Db",
      "x=y",
      "sslrootcert=system",
    ),
    (text, query) => {
      for (const url of [
        text,
        `postgres://${text}`,
        `postgres://u:p@h/${encodeURIComponent(text.toWellFormed())}?${query}`,
      ]) {
        const first = parsePostgresUrl(url);
        if (typeof first === "string") continue;
        const { ignored: _, ...again } = parsed(cleanPostgresUrl(url));
        expect({ ...again, ignored: [] }).toEqual({ ...first, ignored: [] });
      }
    },
  ),
);

test.for<[string, number, string, string]>([
  ["aws-0-eu-central-1.pooler.supabase.com", 6543, "Supabase's pooler", "on port 5432"],
  ["db.abcdefghijklmnop.supabase.co", 6543, "Supabase's dedicated pooler", "port 5432"],
  [
    "ep-cool-1234-pooler.eu-central-1.aws.neon.tech",
    5432,
    "Neon's pooler",
    "ep-cool-1234.eu-central-1.aws.neon.tech",
  ],
])("%s:%i is recognized as a pooler in transaction mode", ([host, port, name, remedy]) => {
  expect(knownTransactionPooler({ host, port })).toBe(name);
  expect(sessionRemedy({ host, port })).toContain(remedy);
});

test("session poolers and servers are not taken for one, and any other pooler has a remedy, too", () => {
  for (const [host, port] of [
    ["aws-0-eu-central-1.pooler.supabase.com", 5432],
    ["db.abcdefghijklmnop.supabase.co", 5432],
    ["ep-cool-1234.eu-central-1.aws.neon.tech", 5432],
    ["db.example", 6432],
  ] as const)
    expect(knownTransactionPooler({ host, port })).toBeUndefined();
  expect(sessionRemedy({ host: "db.example", port: 6432 })).toContain("pool_mode = session");
  expect(sessionRemedy({ host: "x.postgres.database.azure.com", port: 6432 })).toContain("on port 5432");
});

test("a host with only IPv6 addresses is reported if this machine has none, and only then", async () => {
  const machine = (addresses: string[], hasIpv6 = false) => ({
    addressesOf: async () => addresses,
    hasIpv6: () => hasIpv6,
  });
  expect(await ipv6OnlyProblem("db.abc.supabase.co", machine(["2a05:d014::1"]))).toMatch(
    /only IPv6.*session pooler/,
  );
  expect(await ipv6OnlyProblem("db.example", machine(["2a05:d014::1"]))).toMatch(/only IPv6.*IPv4/);
  expect(await ipv6OnlyProblem("2a05:d014::1", machine([]))).toContain("only IPv6");
  expect(await ipv6OnlyProblem("db.example", machine(["2a05:d014::1"], true))).toBeUndefined();
  expect(await ipv6OnlyProblem("db.example", machine(["2a05:d014::1", "8.8.8.8"]))).toBeUndefined();
  expect(await ipv6OnlyProblem("::1", machine([]))).toBeUndefined();
});

test("platforms are recognized by what they leave on a server, then by the host", () => {
  const none = { roles: [], prefixes: [], hasAurora: false };
  expect(platformOf({ ...none, roles: ["rds_superuser"] }, "db.example")).toBe("Amazon RDS");
  expect(platformOf({ ...none, roles: ["rds_superuser"], hasAurora: true }, "x")).toBe("Amazon Aurora");
  expect(platformOf({ ...none, prefixes: ["cloudsql"] }, "10.0.0.1")).toBe("Cloud SQL");
  expect(platformOf(none, "ep-x.eu-central-1.aws.neon.tech")).toBe("Neon");
  expect(platformOf(none, "db.example")).toBeUndefined();
});
