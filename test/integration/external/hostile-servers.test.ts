/**
 * Customers' servers that break the protocol: every query of ours ends with an error, and this process survives.
 *
 * Vitest fails a run with an unhandled rejection: those are what ended processes.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, inject, test } from "vitest";
import { externalServer } from "../../../core/control/placement/external-url";
import { gateway } from "../../../core/external";
import { connectToServer } from "../../../core/external/gateway/dial";
import { createAuthority } from "../../../core/http";
import { connectServer } from "../../../core/postgres";
import { replicaError } from "../../../core/replica/connection";
import { freshDatabase } from "../../support/database";
import { BEHAVIORS, type HostileServer, hostilePostgres, turning } from "../../support/hostile-postgres";
import { overTls, type Pair, TLS_BEHAVIORS } from "../../support/hostile-tls";
import { until } from "../../support/poll";

/** The login's limit, and the delay of a busy machine. */
const ENDS_WITHIN_MS = 20_000;
const TEST_MS = 90_000;
/** They take as long as a server may take for an answer. */
const PATIENT = ["hangs-after-login", "unfinished-message", "slow-drip"];
/** What a server may send. */
const VALID = ["long-json", "json-array", "long-array", "long-text"];
const CUT_AFTER_MS = 300;
const RUNS = Number(process.env.FUZZ_RUNS ?? 20);

let users = 0;

/** The gateway is started with the first connection. */
const folder = mkdtempSync(join(tmpdir(), "basetide-hostile-"));
const authority = createAuthority("Authority of a test");
writeFileSync(join(folder, "authority.pem"), authority.certificate);
process.env.NODE_EXTRA_CA_CERTS = join(folder, "authority.pem");
// One that an earlier file has left does not know the authority.
gateway.stop();

/** Asks the server for something; a user of its own, so that no earlier attempt counts against it. */
async function ask(url: string, sql = "select 1 as one"): Promise<unknown> {
  const pool = connectServer(externalServer(url, "loopback"), {
    max: 1,
    onnotice: () => {},
    connect_timeout: 10,
  });
  const timer = setTimeout(() => void pool.end({ timeout: 0 }), ENDS_WITHIN_MS);
  try {
    return await pool.unsafe(sql);
  } catch (error) {
    return replicaError(error);
  } finally {
    clearTimeout(timer);
    await pool.end({ timeout: 1 });
  }
}

afterAll(() => {
  gateway.stop();
  delete process.env.NODE_EXTRA_CA_CERTS;
  rmSync(folder, { recursive: true });
});

test.concurrent.for(Object.keys(BEHAVIORS).filter((name) => !PATIENT.includes(name)))(
  "a server that sends %s fails its own connection, and neither this process nor the gateway",
  { timeout: TEST_MS },
  async (name, { expect }) => {
    await using server = await hostilePostgres();
    server.behave(name);
    const before = gateway.pid;
    const answer = await ask(server.url(`u${++users}`));
    if (VALID.includes(name)) expect(answer).toHaveLength(1);
    else expect(answer).toMatchObject({ code: "replica_unavailable" });
    expect(server.connections).toBeGreaterThan(0);
    if (before !== undefined) expect(gateway.pid).toBe(before);
  },
);

test.concurrent.for(Object.keys(TLS_BEHAVIORS))(
  "a server that agrees to TLS and sends %s is disconnected within the login's limit, and the gateway survives",
  { timeout: TEST_MS },
  async (name, { expect }) => {
    await using server = await hostilePostgres();
    server.behave(TLS_BEHAVIORS[name]!);
    const before = gateway.pid;
    const answer = await ask(`${server.url(`u${++users}`)}?sslmode=require`);
    expect(answer).toMatchObject({ code: "replica_unavailable" });
    expect(server.connections).toBeGreaterThan(0);
    await until(() => server.open === 0, { what: "no connection is left open" });
    if (before !== undefined) expect(gateway.pid).toBe(before);
  },
);

test.concurrent.for(["endless-login", "endless-auth", "endless-rows", "huge-row", "zeros", "suspended"])(
  "TLS lifts no limit: %s after a valid handshake",
  { timeout: TEST_MS },
  async (name, { expect }) => {
    await using server = await hostilePostgres();
    server.behave(overTls(authority.issue(["127.0.0.1"]), BEHAVIORS[name]!));
    const before = gateway.pid;
    const answer = await ask(`${server.url(`u${++users}`)}?sslmode=verify-full`);
    expect(answer).toMatchObject({ code: "replica_unavailable" });
    await until(() => server.open === 0, { what: "no connection is left open" });
    if (before !== undefined) expect(gateway.pid).toBe(before);
  },
);

/** Whether a connection is made to a server with this certificate. */
async function connects(
  server: HostileServer,
  pair: Pair,
  mode: string,
  injected?: string,
): Promise<boolean> {
  server.behave(overTls(pair, BEHAVIORS["long-text"]!, injected ? Buffer.from(injected) : undefined));
  const answer = await ask(`${server.url(`u${++users}`)}?sslmode=${mode}`);
  if (!Array.isArray(answer)) expect(answer).toMatchObject({ code: "replica_unavailable" });
  return Array.isArray(answer);
}

test("verify-full refuses a certificate with another name, or of another authority", async () => {
  await using server = await hostilePostgres();
  expect(await connects(server, authority.issue(["127.0.0.1"]), "verify-full")).toBe(true);
  const wrong = [
    authority.issue(["elsewhere.example"]),
    authority.issue(["127.0.0.2"]),
    createAuthority("Authority of a test").issue(["127.0.0.1"]),
  ];
  for (const pair of wrong) {
    expect(await connects(server, pair, "verify-full")).toBe(false);
    expect(await connects(server, pair, "require")).toBe(true);
  }
  await until(() => server.open === 0, { what: "no connection is left open" });
});

test("plain text together with the answer to the TLS request ends the connection", async () => {
  await using server = await hostilePostgres();
  const right = authority.issue(["127.0.0.1"]);
  for (const mode of ["require", "verify-full"]) {
    expect(await connects(server, right, mode)).toBe(true);
    expect(await connects(server, right, mode, "R\0\0\0\u0008\0\0\0\0")).toBe(false);
  }
});

test("the kind of protocol violation is reported", async () => {
  await using server = await hostilePostgres();
  for (const [name, message] of [
    [
      "endless-name",
      "the server at 127.0.0.1 does not speak the Postgres protocol: RowDescription is malformed",
    ],
    [
      "sasl-crash",
      "the server at 127.0.0.1 does not speak the Postgres protocol: a malformed SCRAM challenge",
    ],
    ["sasl-rounds", "the server requests 2147483647 iterations of SCRAM, more than 100000"],
    [
      "suspended",
      "the server at 127.0.0.1 does not speak the Postgres protocol: a message of type s in answer to parse",
    ],
  ] as const) {
    server.behave(name);
    expect(await ask(server.url(`u${++users}`))).toMatchObject({ message: `Replica: ${message}` });
  }
});

test("a server that keeps violating the protocol is not connected to for a while, and others are", async () => {
  await using server = await hostilePostgres();
  server.behave("endless-name");
  const user = `u${++users}`;
  await until(async () => /the next attempt is in \d+ s/.test(String(await ask(server.url(user)))), {
    what: "it is not connected to",
  });
  const { connections } = server;
  await ask(server.url(user));
  expect(server.connections).toBe(connections);
  expect(await ask(honestUrl())).toEqual([{ one: 1 }]);
});

test("random servers never affect more than their own connection", { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), async (seed) => {
      await using server = await hostilePostgres({ seed });
      server.behave("random");
      await settles(server, async () => ask(server.url(`u${++users}`)));
    }),
    { numRuns: RUNS },
  );
  expect(await ask(honestUrl())).toEqual([{ one: 1 }]);
});

test("a server that behaves first and then misbehaves never affects more than its own connection", {
  timeout: 120_000,
}, async () => {
  await using database = await freshDatabase();
  const { hostname, port, username, password, pathname } = new URL(database.url);
  const upstream = { host: hostname, port: Number(port) };
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.nat({ max: 12 }), async (seed, turnAt) => {
      await using server = await hostilePostgres({ seed });
      server.behave(turning(upstream, turnAt));
      const url = `postgres://${username}:${password}@127.0.0.1:${server.port}${pathname}?options=-c%20geqo_seed%3D0.${++users}`;
      await settles(server, async () =>
        ask(url, "select g, repeat('x', 100) as x from generate_series(1, 50) as g"),
      );
    }),
    { numRuns: RUNS },
  );
  expect(await ask(honestUrl())).toEqual([{ one: 1 }]);
});

test("a deadline that passes while the host is looked up ends the dial of a server that says nothing", async () => {
  const open = new Set<net.Socket>();
  const silent = net.createServer((socket) => {
    open.add(socket);
    socket.resume().on("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as net.AddressInfo;
  const { address } = externalServer(`postgres://u:p@localhost:${port}/d?sslmode=require`, "loopback");
  const deadline = new AbortController();
  const dialing = connectToServer(address, deadline.signal);
  deadline.abort(new Error("too late"));
  await expect(dialing).rejects.toThrow("too late");
  await until(() => open.size === 0, { what: "no connection is left" });
  silent.close();
});

test("a killed gateway is started again, and its connections fail once", async () => {
  expect(await ask(honestUrl())).toEqual([{ one: 1 }]);
  const first = gateway.pid!;
  process.kill(first, "SIGKILL");
  await until(() => gateway.pid !== first, { what: "its loss is detected" });
  expect(await ask(honestUrl())).toEqual([{ one: 1 }]);
  expect(gateway.pid).not.toBe(first);
});

test("a gateway that hangs is killed", async () => {
  await ask(honestUrl());
  const first = gateway.pid!;
  process.kill(first, "SIGSTOP");
  await until(() => gateway.pid !== first, { what: "it is killed", timeoutMs: 15_000 });
  expect(await ask(honestUrl())).toEqual([{ one: 1 }]);
});

function honestUrl(): string {
  return inject("postgresUrl");
}

/** Hanging connections, which may last for minutes, are cut; then the query must end. */
async function settles(server: HostileServer, work: () => Promise<unknown>): Promise<void> {
  const done = work();
  const cut = setTimeout(() => server.cut(), CUT_AFTER_MS);
  await done;
  clearTimeout(cut);
}
