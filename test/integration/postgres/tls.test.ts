/** TLS to databases: with certificate checks, no connection is made to a server without a valid certificate. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { Network, parseProfile } from "../../../apps/sandbox/network";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../apps/up/postgres/embedded-postgres";
import { createBase } from "../../../core/control/bases";
import { inspectCluster } from "../../../core/control/placement";
import { inspect } from "../../../core/control/placement/external-database";
import { createAuthority } from "../../../core/http";
import { createLogger } from "../../../core/log";
import { asControlError, connectControl } from "../../../core/postgres";
import { installReplica, openReplica, takeReadVersion } from "../../../core/replica";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { until } from "../../support/poll";
import { startProgram } from "../../support/program";
import { unsafeButFast } from "../../support/server";

const UNTRUSTED = /certificate/;

let control: TestControl;
let folder: string;
let server: EmbeddedPostgres;
/** The server's certificate is for localhost; `authority` has issued it, `stranger` is unrelated. */
let files: { authority: string; stranger: string };

beforeAll(async () => {
  control = await testControl();
  folder = mkdtempSync(join(tmpdir(), "basetide-tls-"));
  chmodSync(folder, 0o755);
  const dataDir = join(folder, "postgres");
  const log = createLogger("error", "test");
  server = await startEmbeddedPostgres({ dataDir, port: 0, log, settings: unsafeButFast });
  const authority = createAuthority("Authority of a test");
  const { certificate, key } = authority.issue(["localhost"]);
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  // Written by the server itself: the key must belong to its user.
  for (const [name, text] of Object.entries({ "server.crt": certificate, "server.key": key })) {
    await sql.unsafe(
      `copy (select regexp_split_to_table($$${text.trim()}$$, E'\\n')) to program 'umask 077; cat > ${join(dataDir, name)}'`,
    );
  }
  await sql`alter system set ssl = on`;
  await sql`select pg_reload_conf()`;
  await until(async () => (await sql`select from pg_settings where name = 'ssl' and setting = 'on'`).length, {
    what: "the server speaks TLS",
  });
  await sql`create database external`;
  await sql.end();
  files = { authority: join(folder, "authority.pem"), stranger: join(folder, "stranger.pem") };
  writeFileSync(files.authority, authority.certificate);
  writeFileSync(files.stranger, createAuthority("Somebody else's").certificate);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
  await control?.[Symbol.asyncDispose]();
});

/**
 * URL of a database on the TLS server.
 *
 * @param host another name of the same machine, which is not in the certificate
 */
function urlOf(sslmode: string, host = "localhost", database = "external"): string {
  const url = new URL(server.url);
  Object.assign(url, { hostname: host, pathname: `/${database}`, search: `?sslmode=${sslmode}` });
  return url.href;
}

async function operate(env: Record<string, string>, ...words: string[]) {
  const { config } = control.ctx;
  const given = {
    DATABASE_URL: config.databaseUrl,
    REPLICA_URL: inject("clusterUrl"),
    SECRET_KEY: config.secretKey,
    ...env,
  };
  await using program = startProgram("apps/operator/main.ts", [...words, "--json"], given);
  const code = await program.exited;
  return { code, out: program.output(), err: program.errors() };
}

test("sslmode=require encrypts and checks no certificate; verify-full refuses one without a trusted authority", async () => {
  const encryption = async (url: string) => {
    const findings = (await inspect(control.ctx, url, "base")).checks;
    return findings.find(({ check, severity }) => check === "encryption" || severity === "problem");
  };
  expect(await encryption(urlOf("require"))).toMatchObject({ check: "encryption", severity: "ok" });
  expect(await encryption(urlOf("disable"))).toMatchObject({ check: "encryption", severity: "warning" });
  for (const mode of ["verify-full", "verify-ca"]) {
    expect(await encryption(urlOf(mode))).toMatchObject({
      check: "address",
      severity: "problem",
      message: expect.stringMatching(UNTRUSTED),
    });
  }
});

test("a base is not connected to a destination whose certificate cannot be trusted", async () => {
  const { ctx } = control;
  const account = await control.addAccount("tls@example.org");
  const destination = { kind: "external", url: urlOf("verify-full"), schema: "base" } as const;
  const base = { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: "appOne", destination };
  await expect(createBase(ctx, account.id, base)).rejects.toMatchObject({
    code: "destination_invalid",
    message: expect.stringMatching(UNTRUSTED),
  });
});

test("a replica whose server has another certificate is replica_unavailable, and a cluster is refused", async () => {
  await installReplica(urlOf("require"), { schema: "base", role: new URL(server.url).username });
  const trusting = openReplica({ url: urlOf("require"), schema: "base" });
  expect(await takeReadVersion(trusting)).toBe(1);
  await trusting.close();
  const careful = openReplica({ url: urlOf("verify-full"), schema: "base" });
  await expect(takeReadVersion(careful)).rejects.toMatchObject({ code: "replica_unavailable" });
  await careful.close();
  expect((await inspectCluster(urlOf("verify-full"))).results).toEqual([
    {
      check: "cluster",
      severity: "problem",
      message: expect.stringMatching(UNTRUSTED),
      remedy: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
    },
  ]);
});

test("a customer's server at 200 ms over TLS is inspected, installed and written to like a near one", async () => {
  const { hostname: host, port } = new URL(server.url);
  const far = parseProfile("200±60");
  const network = await Network.listen(far, { host: "127.0.0.1", port: 0 }, { host, port: Number(port) });
  const url = new URL(urlOf("require", "127.0.0.1"));
  url.port = String(network.port);
  const findings = (await inspect(control.ctx, url.href, "far", true)).checks;
  expect(findings.filter(({ severity }) => severity === "problem")).toEqual([]);
  await installReplica(url.href, { schema: "far", role: new URL(server.url).username });
  const replica = openReplica({ url: url.href, schema: "far" });
  try {
    const readVersions = await Promise.all(Array.from({ length: 8 }, () => takeReadVersion(replica)));
    expect(new Set(readVersions).size).toBe(8);
    // A network failure during a call affects that call, and no more.
    network.resetConnections();
    await until(() => takeReadVersion(replica).catch(() => undefined), {
      what: "a read version after the cut",
    });
  } finally {
    await replica.close();
    await network.stop();
  }
}, 60_000);

test("a control plane with an untrusted certificate is control_unavailable, with the reason", async () => {
  const db = connectControl(urlOf("verify-full"));
  const error = await db`select 1`.catch((caught: unknown) => asControlError(caught));
  await db.end();
  expect(error).toMatchObject({
    code: "control_unavailable",
    message: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
  });
});

test("with the right authority, processes connect with every driver; with another, or another name, they do not", {
  timeout: 60_000,
}, async () => {
  const add = (name: string, url: string, authority: string) =>
    operate(
      { NODE_EXTRA_CA_CERTS: authority },
      "cluster",
      "add",
      "--name",
      name,
      "--region",
      "x",
      "--url",
      url,
    );
  expect(await add("right", urlOf("verify-full"), files.authority)).toMatchObject({ code: 0 });
  for (const [name, url, authority] of [
    ["wrong-authority", urlOf("verify-full"), files.stranger],
    ["wrong-name", urlOf("verify-full", "127.0.0.1"), files.authority],
  ] as const) {
    const { code, err } = await add(name, url, authority);
    const { error } = JSON.parse(err);
    expect([name, code, error.code, UNTRUSTED.test(error.message) || /match/.test(error.message)]).toEqual([
      name,
      1,
      "conflict",
      true,
    ]);
  }

  const start = (url: string, authority: string) =>
    startProgram("apps/console/main.ts", [], {
      DATABASE_URL: url,
      SECRET_KEY: control.ctx.config.secretKey,
      NODE_EXTRA_CA_CERTS: authority,
      CONSOLE_PORT: "0",
    });
  await using well = start(urlOf("verify-full", "localhost", "postgres"), files.authority);
  await well.says("console listening");
  await using refused = start(urlOf("verify-full", "localhost", "postgres"), files.stranger);
  expect(await refused.exited).toBe(1);
  expect(refused.errors()).toMatch(UNTRUSTED);
  const { code, out } = await operate(
    { DATABASE_URL: urlOf("verify-full", "localhost", "postgres"), NODE_EXTRA_CA_CERTS: files.stranger },
    "doctor",
  );
  expect([code, JSON.parse(out)]).toEqual([
    1,
    [expect.objectContaining({ check: "control_plane", status: "problem" })],
  ]);
});

test("a URL leads to the host that was checked, and to no other, however it is written", async () => {
  const { ctx } = control;
  const config = { ...ctx.config, privateDestinations: "loopback" as const };
  const wrongOf = async (url: string) =>
    (await inspect({ ...ctx, config }, url, "base")).checks.find(({ severity }) => severity === "problem")
      ?.message;
  const hidden = new URL(inject("postgresUrl"));
  hidden.hostname = "127.0.0.1";
  // A driver that takes the text after the first @ as the hosts would find the hidden server.
  expect(await wrongOf(`postgres://u:p@x,${hidden.host}@127.0.0.2:9/db`)).toContain(
    "no server listens on port 9",
  );
  expect(await wrongOf(`postgres://u:p@127.0.0.2:9/db?host=127.0.0.1&port=${hidden.port}`)).toContain(
    "no server listens on port 9",
  );
  for (const url of [
    `postgres://u:p@127.0.0.2:9,${hidden.host}/db`,
    `postgres://u:p@127.0.0.2%2C${hidden.host}/db`,
    "postgres://u:p@%2Ftmp/db",
    "postgres://u:p@127.0.0.1%00.example/db",
  ]) {
    expect([url, await wrongOf(url)]).toEqual([
      url,
      expect.stringContaining("must have the form postgres://"),
    ]);
  }
});

test("of a URL's parameters, only those of the connection reach the driver and the server", async () => {
  const { text } = (await import("../../../core/control/placement/external-url")).parseConnectionTarget(
    "postgres://u:p@db.example/x?sslmode=require&channel_binding=require&debug=true&max=1000&search_path=evil&host=a",
  );
  expect(text).toBe("postgres://u:p@db.example/x?sslmode=require");
});
