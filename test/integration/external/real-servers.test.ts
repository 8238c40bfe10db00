/** The servers that tests use besides their own: each version starts, poolers pool, the relay terminates TLS. */
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAuthority } from "../../../core/http";
import { HAS_PGBOUNCER, pgBouncer } from "../../support/servers/pgbouncer";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { POSTGRES_VERSIONS } from "../../support/servers/postgres-versions";
import { tlsRelay } from "../../support/servers/tls-relay";

let servers: PostgresServer[];

beforeAll(async () => {
  servers = await Promise.all(POSTGRES_VERSIONS.map((version) => postgresServer({ version })));
}, 180_000);
afterAll(async () => {
  await Promise.all((servers ?? []).map((server) => server[Symbol.asyncDispose]()));
});

async function ask<T>(url: string, question: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    return await question(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

test("each version is the requested one", async () => {
  for (const server of servers) {
    const [row] = await ask(server.url, (sql) => sql`show server_version`);
    expect(row!.server_version).toMatch(new RegExp(`^${server.version}\\.`));
  }
});

test.skipIf(!HAS_PGBOUNCER)("PgBouncer pools in the requested mode, and maps roles", async () => {
  const server = servers[0]!;
  await server.role("pooled");
  const mapped = { theirs: { database: "postgres", role: "pooled" } };
  for (const mode of ["session", "transaction"] as const) {
    await using pooler = await pgBouncer(server, { mode, logins: ["postgres.abc"], mapped });
    const who = (sql: postgres.Sql) => sql`select current_user::text as role`;
    expect(await ask(pooler.over(server.as("pooled")), who)).toMatchObject([{ role: "pooled" }]);
    expect(await ask(pooler.over(server.as("postgres.abc", "theirs")), who)).toMatchObject([
      { role: "pooled" },
    ]);
    const modes = await ask(pooler.adminUrl, (sql) => sql.unsafe("show config"));
    expect(modes.find(({ key }) => key === "pool_mode")).toMatchObject({ value: mode });
  }
});

test("the relay terminates TLS, and maps a role to another name", async () => {
  const server = servers.at(-1)!;
  await server.role("app");
  const certificate = createAuthority("A test's").issue(["localhost", "127.0.0.1"]);
  await using relay = await tlsRelay(server, { certificate, aliases: { "postgres.abc": "app" } });
  const url = relay.over(server.as("app"));
  expect(new URL(url).username).toBe("postgres.abc");
  const [row] = await ask(
    url,
    (sql) => sql`select current_user::text as role, ssl from pg_stat_ssl where pid = pg_backend_pid()`,
  );
  expect(row).toEqual({ role: "app", ssl: false });
  expect(relay.encrypted).toBeGreaterThan(0);
  await expect(ask(relay.over(server.as("app"), "disable"), (sql) => sql`select 1`)).rejects.toThrow();
});

test("a server can speak TLS itself", async () => {
  const tls = createAuthority("A test's").issue(["localhost"]);
  await using server = await postgresServer({ version: "16", tls });
  const [row] = await ask(
    `${server.url}?sslmode=require`,
    (sql) => sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`,
  );
  expect(row).toEqual({ ssl: true });
});
