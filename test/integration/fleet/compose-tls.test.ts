/**
 * `compose.tls.yaml` as Compose reads it together with `compose.yaml`, and its lines of `pg_hba.conf` in a real server. Not
 * the containers: there is no engine.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { createAuthority } from "../../../core/http";
import { composeProgram } from "../../support/compose";
import { until } from "../../support/poll";
import { PASSWORD, type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { repoRoot } from "../../support/source-files";

const FILES = { COMPOSE_FILE: "compose.yaml:compose.tls.yaml" };
const SECRETS = [
  "SECRET_KEY",
  "POSTGRES_PASSWORD",
  "CONTROL_PASSWORD",
  "REPLICA_PASSWORD",
  "GRAFANA_PASSWORD",
];

let server: PostgresServer;
beforeAll(async () => {
  const tls = createAuthority("Authority of a test").issue(["localhost"]);
  server = await postgresServer({ version: "18", tls, settings: { password_encryption: "scram-sha-256" } });
  await server.role("customer");
  await server.role("basetide_cluster");
}, 120_000);
afterAll(() => server?.[Symbol.asyncDispose]());

/** The project as `docker compose config` prints it. */
function read(variables: Record<string, string>) {
  const program = composeProgram();
  if (typeof program === "string") return program;
  const { stdout, stderr, exitCode } = Bun.spawnSync(
    [...program, "--profile", "metrics", "config", "--format", "json"],
    {
      cwd: repoRoot,
      env: {
        PATH: process.env.PATH,
        ...Object.fromEntries(SECRETS.map((name) => [name, "x"])),
        ...variables,
      },
    },
  );
  expect(exitCode, stderr.toString()).toBe(0);
  // A variable that is not set is a warning.
  expect(stderr.toString()).toBe("");
  return JSON.parse(stdout.toString());
}

test("Compose accepts both files, and adds the second one to the first", ({ skip }) => {
  const plain = read({});
  if (typeof plain === "string") return skip(plain);
  const { services, networks } = read(FILES);
  expect(Object.keys(services).sort()).toEqual(Object.keys(plain.services).sort());
  const { replicas, ...others } = services;
  const { replicas: before, ...othersBefore } = plain.services;
  expect(others).toEqual(othersBefore);
  expect(replicas).toMatchObject({ command: before.command, environment: before.environment });
  expect(replicas.volumes.map(({ target }: { target: string }) => target)).toEqual([
    "/var/lib/postgresql",
    "/tls",
  ]);
  expect(replicas.ports).toMatchObject([{ published: "5432", target: 5432 }]);
  expect(before.ports).toBeUndefined();
  expect(networks.default.ipam.config).toEqual([{ subnet: "10.213.50.0/24", gateway: "10.213.50.1" }]);
  const moved = read({ ...FILES, NETWORK: "10.99.1" });
  expect(moved.networks.default.ipam.config).toEqual([{ subnet: "10.99.1.0/24", gateway: "10.99.1.1" }]);
  expect(moved.configs.replicas_hba.content).toBe(hbaOf("10.99.1"));
});

/** The lines for another network. */
function hbaOf(network: string): string {
  const { content } = parse(readFileSync(join(repoRoot, "compose.tls.yaml"), "utf8")).configs.replicas_hba;
  return content.replaceAll(/\$\{NETWORK:-[^}]*\}/g, network);
}

/** The lines take effect with the signal, but not at once. */
async function useLines(hba: string): Promise<void> {
  writeFileSync(join(server.dataDir, "pg_hba.conf"), hba);
  const [pid] = readFileSync(join(server.dataDir, "postmaster.pid"), "utf8").split("\n");
  process.kill(Number(pid), "SIGHUP");
}

/** Who may log in from 127.0.0.1: `role` without TLS, `role+tls` with it. */
async function admitted(): Promise<string[]> {
  const found: string[] = [];
  for (const role of ["postgres", "basetide_cluster", "customer"]) {
    for (const ssl of [false, "require"] as const) {
      const sql = postgres({
        ...{ host: "127.0.0.1", port: server.port, database: "postgres", username: role, password: PASSWORD },
        ...{ ssl, max: 1, onnotice: () => {} },
      });
      if (await sql`select 1`.then(() => true, refused)) found.push(ssl ? `${role}+tls` : role);
      await sql.end();
    }
  }
  return found;
}

/** `pg_hba.conf` refused the connection, and nothing else. */
function refused(error: unknown): false {
  expect(error).toMatchObject({ code: "28000" });
  return false;
}

test("the service logs in from its network as any role; from elsewhere only customers, with TLS", async () => {
  const everyone = ["postgres", "basetide_cluster", "customer"].flatMap((role) => [role, `${role}+tls`]);
  // The tests' address is one of the network, one of elsewhere, and that of the network's gateway.
  const cases = [
    { hba: hbaOf("127.0.0").replaceAll("127.0.0.1/32", "127.0.0.254/32"), expected: everyone },
    { hba: hbaOf("10.213.50"), expected: ["customer+tls"] },
    { hba: hbaOf("127.0.0"), expected: ["customer+tls"] },
  ];
  for (const { hba, expected } of cases) {
    await useLines("host all all all scram-sha-256\n");
    await until(async () => (await admitted()).length === everyone.length, { what: "all roles log in" });
    await useLines(hba);
    await vi.waitFor(async () => expect(await admitted()).toEqual(expected), { timeout: 10_000 });
  }
}, 60_000);
