/** The network in front of the sandbox: TLS, delay, handshakes, resets and idle connections, seen by real clients. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  LOOPBACK,
  mergeProfile,
  Network,
  type NetworkProfile,
  parseProfile,
} from "../../../apps/sandbox/network";
import { type SandboxHandle, startSandbox } from "../../../apps/sandbox/server";
import { until } from "../../support/poll";
import { startSandboxProcess } from "../../support/sandbox-process";
import { crew } from "../../support/sandbox-support";

function far(profile: Partial<NetworkProfile>, tls?: boolean): Promise<SandboxHandle> {
  return startSandbox({ port: 0, network: profile, tls, settings: { rateLimitOff: true } });
}

/** One GET over node:https. */
function get(
  sandbox: SandboxHandle,
  agent: https.Agent,
  path = "/healthz",
): Promise<{ status: number; reused: boolean }> {
  return new Promise((resolve, reject) => {
    const request = https.get(sandbox.url + path, { agent, ca: sandbox.authority }, (answer) => {
      answer.resume().on("end", () => resolve({ status: answer.statusCode!, reused: request.reusedSocket }));
    });
    request.on("error", reject);
  });
}

async function took(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

test("clients that trust its authority reach it over TLS, others do not; its control interface bypasses the network", async () => {
  await using sandbox = await far({});
  expect(sandbox.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  const trusting = await fetch(`${sandbox.url}/healthz`, { tls: { ca: sandbox.authority } });
  expect(await trusting.text()).toBe("ok\n");
  await expect(fetch(`${sandbox.url}/healthz`)).rejects.toMatchObject({ code: /VERIFY|CERT/ });
  const state = await fetch(`${sandbox.controlUrl}/_sandbox/network`);
  expect(await state.json()).toMatchObject({ profile: LOOPBACK, opened: 2 });
});

test("a first request takes three round trips over TLS and one on a kept connection, and arrives after its delay", async () => {
  await using sandbox = await far({ roundTripMs: 200 });
  const baseId = crew(sandbox);
  const agent = new https.Agent({ keepAlive: true });
  const ask = () => get(sandbox, agent, `/v0/${baseId}/Teams`);
  const from = performance.now();
  const first = await took(ask);
  expect(first).toBeGreaterThanOrEqual(595);
  const kept = await took(async () => expect((await ask()).reused).toBe(true));
  expect(kept).toBeGreaterThanOrEqual(195);
  const [entry] = sandbox.control.log(baseId);
  expect(entry!.arrivalMs - from).toBeGreaterThanOrEqual(495);
  agent.destroy();
});

test("a handshake can cost more, and the profile can change during the run", async () => {
  await using sandbox = await far({});
  const set = (profile: object) =>
    fetch(`${sandbox.controlUrl}/_sandbox/network`, { method: "POST", body: JSON.stringify(profile) });
  const agent = new https.Agent({ keepAlive: true });
  await get(sandbox, agent);
  await set({ handshakeMs: 300 });
  expect(await took(() => get(sandbox, new https.Agent()))).toBeGreaterThanOrEqual(295);
  await set({ handshakeMs: 0, roundTripMs: 200 });
  expect(await took(() => get(sandbox, agent))).toBeGreaterThanOrEqual(195);
  expect((await set({ jitterMs: 150 })).status).toBe(400);
  expect((await set({ delay: 1 })).status).toBe(400);
  agent.destroy();
});

test("a session is resumed on the next connection", async () => {
  await using sandbox = await far({ roundTripMs: 20 });
  const connect = async (session?: Buffer) => {
    const { port, authority: ca } = sandbox;
    const socket = tls.connect({ host: "127.0.0.1", port, ca, ...(session && { session }) });
    const readVersion = once(socket, "session");
    await once(socket, "secureConnect");
    socket.write("GET /healthz HTTP/1.1\r\nhost: sandbox\r\n\r\n");
    const isResumed = socket.isSessionReused();
    const [next] = session ? [session] : ((await readVersion) as [Buffer]);
    socket.destroy();
    return { isResumed, next };
  };
  const { next } = await connect();
  expect((await connect(next)).isResumed).toBe(true);
});

test("idle connections are closed, and what is sent on them afterwards is lost", async () => {
  await using sandbox = await far({ roundTripMs: 1000, idleMs: 100 }, false);
  const [waiting, asking] = [1, 2].map(() => net.connect(sandbox.port, "127.0.0.1")) as [
    net.Socket,
    net.Socket,
  ];
  const ended = once(waiting, "end");
  const { network } = sandbox.control;
  await until(() => network.state().opened === 2 && network.state().open === 0, { what: "both are closed" });
  // The packet that reports it is still in transit.
  asking.write("GET /healthz HTTP/1.1\r\nhost: sandbox\r\n\r\n");
  const [error] = (await once(asking, "error")) as [NodeJS.ErrnoException];
  expect(error.code).toBe("ECONNRESET");
  await ended;
});

test("connections are reset at random, or all at once", async () => {
  await using sandbox = await far({ resetShare: 1 });
  await expect(get(sandbox, new https.Agent())).rejects.toMatchObject({ code: "ECONNRESET" });
  sandbox.control.network.set({ resetShare: 0 });
  const agent = new https.Agent({ keepAlive: true });
  await get(sandbox, agent);
  await fetch(`${sandbox.controlUrl}/_sandbox/network/connections`, { method: "DELETE" });
  expect(sandbox.control.network.state().open).toBe(0);
  agent.destroy();
});

test("N1: all bytes arrive in order, with any jitter and any chunks, in both directions", {
  timeout: 60_000,
}, async () => {
  const echo = net.createServer((socket) => socket.pipe(socket).on("error", () => {}));
  await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
  const target = { host: "127.0.0.1", port: (echo.address() as net.AddressInfo).port };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 0, max: 20 }),
      fc.nat(),
      async (sizes, jitterMs, seed) => {
        const profile = mergeProfile(LOOPBACK, { roundTripMs: 2 * jitterMs, jitterMs, seed });
        const network = await Network.listen(profile, { host: "127.0.0.1", port: 0 }, target);
        try {
          const sent = Buffer.concat(sizes.map((size, index) => Buffer.alloc(size, index)));
          const socket = net.connect(network.port, "127.0.0.1");
          const received: Buffer[] = [];
          socket.on("data", (bytes) => received.push(Buffer.from(bytes)));
          let at = 0;
          for (const size of sizes) {
            socket.write(sent.subarray(at, at + size));
            at += size;
            if (size % 3 === 0) await Bun.sleep(1);
          }
          const count = () => received.reduce((sum, { length }) => sum + length, 0);
          await until(() => count() >= sent.length, { what: "everything is back" });
          expect(Buffer.concat(received).equals(sent)).toBe(true);
          socket.destroy();
        } finally {
          await network.stop();
        }
      },
    ),
    { numRuns: 25 },
  );
  echo.close();
});

test("a receiver that does not read makes the sender wait, and no byte is lost", async () => {
  const all = Buffer.alloc(32 << 20, "x");
  let sender: net.Socket | undefined;
  const server = net.createServer((socket) => {
    sender = socket.on("error", () => {});
    socket.end(all);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const target = { host: "127.0.0.1", port: (server.address() as net.AddressInfo).port };
  const profile = mergeProfile(LOOPBACK, { roundTripMs: 10 });
  const network = await Network.listen(profile, { host: "127.0.0.1", port: 0 }, target);
  const receiver = net.connect(network.port, "127.0.0.1").pause();
  const left = () => sender?.writableLength ?? 0;
  const seen: number[] = [];
  const isWaiting = () => seen.push(left()) > 1 && seen.at(-1) === seen.at(-2) && left() > 0;
  await until(isWaiting, { what: "it waits", intervalMs: 100 });
  expect(left()).toBeGreaterThan(all.length / 2);
  let received = 0;
  receiver.on("data", (bytes) => (received += bytes.length)).resume();
  await until(() => received === all.length, { what: "everything is in SQL" });
  await network.stop();
  server.close();
});

test("flags and variables describe the network as text", () => {
  expect(parseProfile("80±20")).toEqual({ ...LOOPBACK, roundTripMs: 80, jitterMs: 20 });
  expect(parseProfile("200+-60")).toEqual({ ...LOOPBACK, roundTripMs: 200, jitterMs: 60 });
  expect(parseProfile("0")).toEqual(LOOPBACK);
  expect(parseProfile('{"roundTripMs":80,"idleMs":5000}')).toEqual({
    ...LOOPBACK,
    roundTripMs: 80,
    idleMs: 5000,
  });
  for (const wrong of ["fast", "[80]", '{"roundTripMs":"80"}', "10±20", '{"resetShare":2}'])
    expect(() => parseProfile(wrong), wrong).toThrow();
});

test("as a process, it prints the address of its control interface, and writes the certificate that its clients trust", async () => {
  await using sandbox = await startSandboxProcess({ network: "80±20" });
  const ca = await readFile(sandbox.clientEnv.NODE_EXTRA_CA_CERTS!, "utf8");
  const [, url] = /api.airtable.com=(https:[^,]+)/.exec(sandbox.clientEnv.UPSTREAMS!) ?? [];
  expect((await fetch(`${url}/healthz`, { tls: { ca } })).status).toBe(200);
  expect(await sandbox.network()).toMatchObject({ opened: 1, profile: { roundTripMs: 80, jitterMs: 20 } });
});
