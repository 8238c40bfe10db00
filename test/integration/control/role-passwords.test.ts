/** Servers that accept no SCRAM verifier as a role's password: Neon and Lakebase, by their error. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { inspectCluster } from "../../../core/control/placement";
import { createAuthority } from "../../../core/http";
import {
  dropDatabase,
  nameDatabase,
  type Provisioned,
  provisionDatabase,
  rotatePassword,
} from "../../../core/replica";
import { canLogIn } from "../../support/can-log-in";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { type RefusingRelay, refusingRelay } from "../../support/servers/refusing-relay";
import { type TlsRelay, tlsRelay } from "../../support/servers/tls-relay";

vi.setConfig({ testTimeout: 90_000 });

const NEON = { code: "XX000", message: "Neon only supports being given plaintext passwords" };

let server: PostgresServer;
let adminUrl: string;
/** Of an admin that may not create roles. */
let weakUrl: string;
let neon: RefusingRelay;
let encrypted: TlsRelay;
beforeAll(async () => {
  server = await postgresServer({
    version: "18",
    settings: { log_statement: "all", logging_collector: "on", log_directory: "log" },
  });
  adminUrl = await server.role("plain_admin", "createdb createrole");
  weakUrl = await server.role("weak", "createdb");
  await server.run([
    "alter role plain_admin set password_encryption = 'md5'",
    "alter role postgres set password_encryption = 'md5'",
  ]);
  neon = await refusingRelay(server, (query) => (/SCRAM-SHA-256\$/.test(query) ? NEON : undefined));
  const certificate = createAuthority("A test's").issue(["localhost", "127.0.0.1"]);
  encrypted = await tlsRelay(neon, { certificate });
}, 60_000);
afterAll(async () => {
  await encrypted?.[Symbol.asyncDispose]();
  await neon?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

async function opens({ role, database }: Provisioned, password: string): Promise<boolean> {
  const url = Object.assign(new URL(server.as(role, database)), { password }).href;
  return canLogIn(url);
}

function serverLog(): string {
  const folder = join(server.dataDir, "log");
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("");
}

const asSuperuser = async <T>(work: (sql: postgres.Sql) => Promise<T>) => {
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  return work(sql).finally(() => sql.end({ timeout: 1 }));
};

test.each(["a superuser", "an admin who may create databases and roles"])(
  "over TLS such a server gets the password itself, and stores a verifier of it: %s",
  async (kind) => {
    const url = encrypted.over(kind === "a superuser" ? server.url : adminUrl);
    const made = await provisionDatabase(url);
    expect(await opens(made, made.password)).toBe(true);
    const [kept] = await asSuperuser(
      (sql) => sql`select rolpassword as password from pg_authid where rolname = ${made.role}`,
    );
    expect(kept!.password).toMatch(/^SCRAM-SHA-256\$/);
    const rotated = await rotatePassword(url, made.role);
    expect([await opens(made, made.password), await opens(made, rotated)]).toEqual([false, true]);
    // A superuser may prevent them from being logged; otherwise the check of the cluster reports it.
    if (kind === "a superuser") expect(serverLog()).not.toContain(rotated);
    expect(serverLog()).toContain(made.role);
    const isSent = (query: string) => query.includes(rotated);
    expect(neon.queries.filter(isSent)).toHaveLength(1);
    await dropDatabase(url, made.database, made.role);
  },
);

test("without TLS no password is sent: the error has the server's text and the remedy, and nothing is left behind", async () => {
  const url = Object.assign(new URL(adminUrl), { port: String(neon.port) }).href;
  const made = nameDatabase();
  await expect(provisionDatabase(url, undefined, made)).rejects.toMatchObject({
    code: "config_invalid",
    message: expect.stringMatching(/Neon only supports .*sslmode=verify-full/),
  });
  expect(neon.queries.filter((query) => query.includes(made.password))).toEqual([]);
  const left = await asSuperuser((sql) => sql`select from pg_roles where rolname = ${made.role}`);
  expect(left).toHaveLength(0);
});

test("the check of a cluster reports how the server stores passwords, and leaves no role there", async () => {
  const plain = Object.assign(new URL(adminUrl), { port: String(neon.port) }).href;
  const about = async (url: string) =>
    (await inspectCluster(url)).results.filter(({ message }) => message.includes("password"));
  expect(await about(plain)).toMatchObject([
    { severity: "problem", remedy: expect.stringContaining("sslmode") },
  ]);
  expect(await about(encrypted.over(adminUrl))).toMatchObject([{ severity: "warning" }]);
  expect(await about(adminUrl)).toEqual([]);
  expect(await asSuperuser((sql) => sql`select from pg_roles where rolname ~ '^bt_probe'`)).toHaveLength(0);
});

test("a role that exists or may not be created is reported, and not tried again in clear text", async () => {
  const taken = { ...nameDatabase(), role: "plain_admin" };
  await expect(provisionDatabase(adminUrl, undefined, taken)).rejects.toMatchObject({
    message: expect.stringContaining("already exists"),
  });
  await expect(provisionDatabase(weakUrl)).rejects.toMatchObject({
    code: "destination_invalid",
    message: expect.stringContaining("permission denied to create role"),
  });
});
