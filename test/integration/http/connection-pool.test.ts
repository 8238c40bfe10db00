/** Kept connections: established before use, shared, replaced in time, and never used twice for one request. */
import http from "node:http";
import net from "node:net";
import tls from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConnectionPool, StaleConnection, type StreamedAnswer } from "../../../core/http/connections";
import { openSocket } from "../../../core/http/connections/dial";
import { createAuthority } from "../../support/certificates";
import { until } from "../../support/poll";
import { httpAnswer, type RawUpstream, rawUpstream } from "../../support/raw-upstream";

const never = new AbortController().signal;
/** Far longer than a handshake on loopback takes. */
const SLOW_OPEN_MS = 500;
let upstream: RawUpstream;
let pool: ConnectionPool;
/** Connections that the upstream has accepted and not closed. */
let sockets: Set<net.Socket>;
let nowMs = 0;

beforeEach(async () => {
  upstream = await rawUpstream();
  sockets = upstream.sockets;
  pool = new ConnectionPool(upstream.url, { now: () => nowMs });
});
afterEach(async () => {
  delete process.env.http_proxy;
  delete process.env.https_proxy;
  pool.close();
  await upstream[Symbol.asyncDispose]();
});

const request = { method: "GET", path: "/v0/x", headers: new Headers(), body: undefined };

async function ask(): Promise<string> {
  const held = await pool.take(never);
  return await read(held.send(request, never));
}

async function read(answering: Promise<StreamedAnswer>): Promise<string> {
  return (await (await answering).bytes()).toString();
}

test("a connection in use is established, and exclusive", async () => {
  const first = await pool.take(never);
  expect([pool.size, sockets.size, upstream.requests.length]).toEqual([{ resting: 0, open: 1 }, 1, 0]);
  const second = await pool.take(never);
  expect(sockets.size).toBe(2);
  // Sent at once, on the existing connection.
  const answering = first.send(request, never);
  expect(await read(answering)).toBe("{}");
  expect(first.isOpen).toBe(false);
  second[Symbol.dispose]();
  second[Symbol.dispose]();
  await until(() => pool.size.resting === 2, { what: "both are idle" });
  expect(await ask()).toBe("{}");
  expect(sockets.size).toBe(2);
});

test("sequential requests use one connection, concurrent requests one each", async () => {
  for (let i = 0; i < 5; i++) expect(await ask()).toBe("{}");
  expect(sockets.size).toBe(1);
  await Promise.all(Array.from({ length: 7 }, ask));
  expect(sockets.size).toBe(7);
  expect(upstream.requests).toHaveLength(12);
});

test("a thousand requests at once have a connection each", async () => {
  const held = await Promise.all(Array.from({ length: 1000 }, () => pool.take(never)));
  expect(pool.size).toEqual({ resting: 0, open: 1000 });
  for (const connection of held) connection[Symbol.dispose]();
});

test("waiting requests get released connections, in order of arrival", async () => {
  const held = await pool.take(never);
  const order: number[] = [];
  const waiting = [1, 2].map(async (n) => {
    const next = await pool.take(never);
    order.push(n);
    return next;
  });
  held[Symbol.dispose]();
  for (const next of await Promise.all(waiting)) next[Symbol.dispose]();
  expect(order).toEqual([1, 2]);
  const gone = new AbortController();
  const [a, b] = [await pool.take(never), await pool.take(never)];
  const leaving = pool.take(gone.signal);
  gone.abort(new Error("gone"));
  await expect(leaving).rejects.toThrow("gone");
  a[Symbol.dispose]();
  b[Symbol.dispose]();
});

test("H2: a kept connection that breaks fails its request as stale; it was sent once, and idle connections are closed", async () => {
  for (const how of ["reset", "end"] as const) {
    upstream.answer = (socket) => socket.write(httpAnswer(200, {}, "{}"));
    await Promise.all([ask(), ask(), ask()]);
    upstream.requests.length = 0;
    upstream.answer = (socket) => (how === "reset" ? socket.resetAndDestroy() : socket.end());
    await expect(ask()).rejects.toBeInstanceOf(StaleConnection);
    expect(upstream.requests).toHaveLength(1);
    expect(pool.size.resting).toBe(0);
  }
  // A new one was never idle: the source's answer broke off.
  const error = await ask().catch((caught: unknown) => caught);
  expect(error).not.toBeInstanceOf(StaleConnection);
  expect(error).toMatchObject({ code: "ECONNRESET" });
});

test.each([
  ["was never used", async () => (await pool.take(never))[Symbol.dispose]()],
  ["was used", async () => void (await ask())],
])(
  "a source that ends an idle connection that %s, or sends something on it, is noticed",
  async (_, leave) => {
    for (const how of ["end", "reset", "says"] as const) {
      await leave();
      await until(() => pool.size.resting === 1, { what: "it is idle" });
      for (const socket of sockets) {
        if (how === "end") socket.end();
        else if (how === "reset") socket.resetAndDestroy();
        else socket.write("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
      }
      await until(() => pool.size.open === 0, { what: `it is released after ${how}` });
      expect(await ask()).toBe("{}");
      await until(() => pool.size.resting === 1, { what: "the new one is idle" });
      for (const socket of sockets) socket.destroy();
      await until(() => pool.size.open === 0, { what: "everything is as before" });
    }
  },
);

test("H3: the path counts as new for 1.25 s after a connection is opened while no other is open", async () => {
  expect(pool.dropMs).toBe(0);
  await Promise.all([ask(), ask()]);
  await until(() => pool.size.resting === 2, { what: "both are idle" });
  expect(pool.dropMs).toBe(250);
  nowMs = 1250;
  expect(pool.dropMs).toBe(0);
  const [one] = [...sockets];
  one!.resetAndDestroy();
  await until(() => pool.size.open === 1, { what: "one is lost" });
  await Promise.all([ask(), ask()]);
  expect(pool.dropMs).toBe(0);
  await until(() => pool.size.resting === 2, { what: "both are idle again" });
  // The connection in use fails first, and this side closes the idle one.
  upstream.answer = () => sockets.forEach((socket) => void socket.resetAndDestroy());
  await expect(ask()).rejects.toBeInstanceOf(StaleConnection);
  await until(() => pool.size.open === 0, { what: "all are lost" });
  upstream.answer = (socket) => socket.write(httpAnswer(200, {}, "{}"));
  await ask();
  expect(pool.dropMs).toBe(250);
  nowMs += 1250;
  expect(pool.dropMs).toBe(0);
});

test("a request that is canceled before it is sent is not sent, and its connection stays open", async () => {
  const held = await pool.take(never);
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on("uncaughtException", note);
  try {
    await expect(held.send(request, AbortSignal.abort())).rejects.toThrow("the connection was closed");
    await until(() => pool.size.open === 0, { what: "the connection is released" });
    expect(await ask()).toBe("{}");
  } finally {
    process.off("uncaughtException", note);
  }
  expect(unhandled).toEqual([]);
  expect(upstream.requests).toHaveLength(1);
});

test("a connection that cannot be opened fails its waiting request, and not the next one", async () => {
  const free = await rawUpstream();
  const gone = new ConnectionPool(free.url);
  await free[Symbol.asyncDispose]();
  await expect(gone.take(never)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(gone.size).toEqual({ resting: 0, open: 0 });
  gone.close();
});

test("the source's own statement of how long it keeps a connection is respected", async () => {
  upstream.answer = (socket) => socket.write(httpAnswer(200, { "Keep-Alive": "timeout=1" }, "{}"));
  await ask();
  await until(() => pool.size.resting === 1, { what: "it is idle" });
  await ask();
  expect(sockets.size + upstream.requests.length).toBeGreaterThanOrEqual(3);
  await until(() => upstream.accepted === 2, { what: "a new one was opened" });
});

test("idle connections are replaced before they are old, the new one first, and five are kept", async () => {
  pool.keepWarm();
  await until(() => pool.size.resting === 5, { what: "five are opened before they are needed" });
  await Promise.all(Array.from({ length: 8 }, ask));
  await until(() => pool.size.resting === 8, { what: "they are idle" });
  const least: number[] = [];
  for (let second = 2; second <= 40; second += 2) {
    nowMs = second * 1000;
    await pool.maintain();
    least.push(pool.size.resting);
  }
  expect(Math.min(...least)).toBeGreaterThanOrEqual(5);
  await until(() => sockets.size === 5, { what: "the rest are closed" });
  expect(upstream.accepted).toBeGreaterThanOrEqual(8 + 5);
  expect(upstream.requests).toHaveLength(8);
  // It was unused for five minutes: nothing is kept.
  nowMs += 5 * 60_000;
  await pool.maintain();
  await until(() => sockets.size === 0, { what: "all are closed" });
  expect(await ask()).toBe("{}");
});

test("a connection that got old unattended is not used", async () => {
  await ask();
  await until(() => pool.size.resting === 1, { what: "it is idle" });
  nowMs += 21_000;
  expect(await ask()).toBe("{}");
  expect(upstream.accepted).toBe(2);
});

test("a connection that is always in use is replaced after five minutes", async () => {
  for (const from = nowMs; nowMs <= from + 5 * 60_000; nowMs += 10_000) {
    await ask();
    await until(() => pool.size.resting === 1, { what: "it is idle" });
  }
  expect(upstream.accepted).toBe(1);
  await ask();
  expect(upstream.accepted).toBe(2);
});

test("over TLS the session is resumed, and the latency is measured by the handshake", async () => {
  const authority = createAuthority("Test");
  const { key, certificate } = authority.issue(["localhost"]);
  const resumed: boolean[] = [];
  const server = tls.createServer({ key, cert: certificate }, (socket) => {
    resumed.push(socket.isSessionReused());
    socket.on("data", () => socket.write(httpAnswer(200, {}, "{}"))).on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const secure = new ConnectionPool(`https://localhost:${port}`, {
    dial: (address, session) => openSocket(address, session, authority.certificate),
  });
  // Not signed by an authority that the machine trusts.
  await expect(new ConnectionPool(`https://localhost:${port}`).take(never)).rejects.toThrow();
  const fetched = async () => read((await secure.take(never)).send(request, never));
  expect(await fetched()).toBe("{}");
  const held = await secure.take(never);
  expect(await fetched()).toBe("{}");
  held[Symbol.dispose]();
  expect(resumed).toEqual([false, true]);
  expect(secure.spreadMs).toBeGreaterThan(0);
  secure.close();
  server.close();
});

test("the time to open the TCP connection is no part of the handshake's round trip, also through the machine's HTTP proxy", async () => {
  const authority = createAuthority("Test");
  const { key, certificate } = authority.issue(["localhost"]);
  const server = tls.createServer({ key, cert: certificate }, (socket) => socket.on("error", () => {}));
  let connections = 0;
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `https://localhost:${(server.address() as net.AddressInfo).port}`;
  const open = async () => {
    const opening = openSocket(address, {}, authority.certificate);
    // Nothing has arrived yet: opening the connection takes at least this long.
    Bun.sleepSync(SLOW_OPEN_MS);
    const { socket, roundTripMs, usualMs } = await opening;
    socket.destroy();
    return { roundTripMs, usualMs };
  };
  const direct = await open();
  const { proxy, through } = await tunnels();
  process.env.https_proxy = proxy.url;
  const tunneled = await open();
  expect(through).toEqual([new URL(address).host]);
  expect(connections).toBe(2);
  for (const { roundTripMs, usualMs } of [direct, tunneled]) {
    expect(usualMs).toBeGreaterThanOrEqual(SLOW_OPEN_MS / 2);
    expect(roundTripMs).toBeLessThan(usualMs);
  }
  proxy.close();
  server.close();
});

/** Starts an HTTP proxy, and lists the hosts that it connects to. */
async function tunnels() {
  const through: string[] = [];
  const server = http.createServer().on("connect", (asked, near) => {
    through.push(asked.url!);
    const far = net.connect(Number(asked.url!.split(":")[1]), "127.0.0.1", () => {
      near.write("HTTP/1.1 200 Connection established\r\n\r\n");
      near.pipe(far).pipe(near);
    });
    far.on("error", () => near.destroy());
    near.on("error", () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  return { proxy: { url, close: () => server.close() }, through };
}

test("the machine's HTTP proxy is used", async () => {
  const { proxy, through } = await tunnels();
  process.env.http_proxy = proxy.url;
  expect(await ask()).toBe("{}");
  // Pools of other files in this worker, which open connections to sources that have ended, use it too.
  expect(through).toContain(new URL(upstream.url).host);
  pool.close();
  proxy.close();
});
