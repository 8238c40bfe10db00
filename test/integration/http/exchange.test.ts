/** Requests whose answers are read whole, or passed on as they arrive: sent once, on a kept connection, which is used again only if that is safe. */
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  AnswerTimeout,
  AnswerTooLarge,
  ConnectionPool,
  type HeldConnection,
  type HttpAnswer,
  StaleConnection,
} from "../../../core/http/connections";
import { openSocket } from "../../../core/http/connections/dial";
import { processClock } from "../../../core/limiter/clock";
import { until } from "../../support/poll";
import { httpAnswer, type RawUpstream, rawUpstream } from "../../support/raw-upstream";

const never = new AbortController().signal;
const question = {
  method: "POST",
  path: "/v0/x?a=%20",
  head: "Authorization: Bearer k\r\n",
  body: '{"q":"ä"}',
  mostBytes: 1000,
  timeoutMs: 30_000,
};
let upstream: RawUpstream;
let pool: ConnectionPool;

beforeEach(async () => {
  upstream = await rawUpstream();
  pool = new ConnectionPool(upstream.url);
});
afterEach(async () => {
  pool.close();
  await upstream[Symbol.asyncDispose]();
});

async function ask(over: Partial<typeof question> = {}, signal = never): Promise<HttpAnswer> {
  return (await pool.take(never)).exchange({ ...question, ...over }, signal);
}

async function askByStream(): Promise<string> {
  const held = await pool.take(never);
  const request = { method: "GET", path: "/v0/y", headers: new Headers(), body: undefined };
  return (await (await held.send(request, never)).bytes()).toString();
}

test("requests of both kinds take turns on one connection, byte for byte", async () => {
  for (let turn = 0; turn < 3; turn++) {
    expect(await ask()).toMatchObject({ status: 200, body: Buffer.from("{}") });
    expect(await askByStream()).toBe("{}");
    expect(await ask({ method: "GET", path: "/v0/z", body: undefined as never })).toMatchObject({
      status: 200,
    });
  }
  expect(upstream.accepted).toBe(1);
  expect(upstream.requests).toHaveLength(9);
  const [first, , third] = upstream.requests;
  expect(first).toEqual({
    line: "POST /v0/x?a=%20 HTTP/1.1",
    headers: { host: new URL(upstream.url).host, authorization: "Bearer k", "content-length": "10" },
    body: Buffer.from(question.body).toString("latin1"),
  });
  expect(third).toMatchObject({ line: "GET /v0/z HTTP/1.1", body: "" });
  expect(third!.headers).not.toHaveProperty("content-length");
});

test("H2: a kept connection that breaks before the answer is stale, and the request was sent once", async () => {
  for (const how of ["reset", "end"] as const) {
    upstream.answer = (socket) => socket.write(httpAnswer(200, {}, "{}"));
    await ask();
    upstream.requests.length = 0;
    upstream.answer = (socket) => (how === "reset" ? socket.resetAndDestroy() : socket.end());
    await expect(ask()).rejects.toBeInstanceOf(StaleConnection);
    expect(upstream.requests).toHaveLength(1);
    await until(() => pool.size.open === 0, { what: "the connection is released" });
  }
});

test("an answer that breaks off is an error, whether or not the connection was idle before", async () => {
  for (let turn = 0; turn < 2; turn++) {
    upstream.answer = (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
    const error = await ask().catch((caught: unknown) => caught);
    expect(error).not.toBeInstanceOf(StaleConnection);
    expect(error).toMatchObject({ code: "ECONNRESET" });
    await until(() => pool.size.open === 0, { what: "the connection is released" });
    upstream.answer = (socket) => socket.write(httpAnswer(200, {}, "{}"));
    await ask();
  }
});

test.each([
  [
    "announces its end",
    (answer: Buffer) => Buffer.from(answer.toString().replace("\r\n", "\r\nConnection: close\r\n")),
  ],
  [
    "is followed by more bytes",
    (answer: Buffer) => Buffer.concat([answer, Buffer.from("HTTP/1.1 200 OK\r\n")]),
  ],
])("a connection whose answer %s is not used again", async (_, sent) => {
  upstream.answer = (socket) => socket.write(sent(httpAnswer(200, {}, "{}")));
  for (let turn = 0; turn < 2; turn++) {
    expect(await ask()).toMatchObject({ body: Buffer.from("{}") });
    await until(() => pool.size.open === 0, { what: "the connection is released" });
  }
  expect(upstream.accepted).toBe(2);
});

test("I4: a request is written before its permit begins to rest, on a new connection and on a kept one, with a body or without", async () => {
  let written = 0;
  const counted = new ConnectionPool(upstream.url, {
    dial: async (address, session) => {
      const opened = await openSocket(address, session);
      const write = opened.socket.write.bind(opened.socket);
      opened.socket.write = (bytes: Uint8Array | string) => {
        written += bytes.length;
        return write(bytes);
      };
      return opened;
    },
  });
  /** How much of each request had been written. */
  const seen: number[] = [];
  const sent = async (answering: (held: HeldConnection) => Promise<unknown>) => {
    const held = await counted.take(never);
    const from = written;
    processClock.onceSent(() => seen.push(written - from));
    await answering(held);
    expect(written - from).toBe(seen.at(-1)!);
  };
  for (const body of [undefined, "x".repeat(100_000)]) {
    for (let turn = 0; turn < 2; turn++) {
      await sent((held) => held.exchange({ ...question, body: body as never }, never));
      const request = { method: "POST", path: "/v0/y", headers: new Headers() };
      const bytes = body === undefined ? undefined : new TextEncoder().encode(body);
      await sent(async (held) => (await held.send({ ...request, body: bytes }, never)).bytes());
    }
  }
  expect(Math.min(...seen)).toBeGreaterThan(0);
  expect([upstream.accepted, upstream.requests.length]).toEqual([1, seen.length]);
  counted.close();
});

test("interim answers are skipped, also a 100 that was not asked for", async () => {
  const interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
  upstream.answer = (socket) => socket.write(`${interim}${httpAnswer(200, {}, "{}")}`);
  expect(await ask()).toMatchObject({ status: 200, body: Buffer.from("{}") });
  expect(await askByStream()).toBe("{}");
  expect([upstream.accepted, upstream.requests.length]).toEqual([1, 2]);
});

test("an answer without a length is complete when the source ends the connection, and not when the connection breaks", async () => {
  const start = "HTTP/1.1 200 OK\r\n\r\n";
  upstream.answer = (socket) => socket.end(`${start}whole`);
  expect(await ask()).toMatchObject({ body: Buffer.from("whole") });
  expect(await askByStream()).toBe("whole");
  upstream.answer = (socket) => socket.write(`${start}half`, () => socket.resetAndDestroy());
  await expect(ask()).rejects.toMatchObject({ code: "ECONNRESET" });
  upstream.answer = (socket) => socket.write(`${start}half`);
  const held = await pool.take(never);
  const request = { method: "GET", path: "/v0/y", headers: new Headers(), body: undefined };
  const answer = await held.send(request, never);
  for (const socket of upstream.sockets) socket.resetAndDestroy();
  await expect(answer.bytes()).rejects.toMatchObject({ code: "ECONNRESET" });
});

test("an answer that is late, too large, not HTTP or aborted is an error, and closes its connection", async () => {
  const gone = new AbortController();
  const cases: [string, () => Promise<unknown>, unknown][] = [
    ["", () => ask({ timeoutMs: 50 }), expect.any(AnswerTimeout)],
    ["HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", () => ask(), expect.any(AnswerTooLarge)],
    ["SSH-2.0\r\n\r\n", () => ask(), expect.objectContaining({ code: "INVALID_HTTP" })],
    [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
      () => {
        const asking = ask({}, gone.signal);
        const seen = upstream.requests.length;
        void until(() => upstream.requests.length > seen, { what: "the request arrives" }).then(() =>
          gone.abort(),
        );
        return asking;
      },
      expect.any(Error),
    ],
  ];
  for (const [answer, asking, error] of cases) {
    upstream.answer = (socket) => socket.write(answer);
    expect(await asking().catch((caught: unknown) => caught)).toEqual(error);
    await until(() => pool.size.open === 0, { what: "the connection is released" });
  }
  // Aborted before: nothing is sent.
  const seen = upstream.requests.length;
  await expect(ask({}, gone.signal)).rejects.toThrow("the connection was closed");
  expect(upstream.requests).toHaveLength(seen);
});

test("an answer that is passed on as it arrives: paused or not, whole or broken off, with or without a body", async () => {
  const ask = async (over: { method?: string; body?: Uint8Array<ArrayBuffer> } = {}) =>
    (await pool.take(never)).send(
      { method: "GET", path: "/v0/y", headers: new Headers({ "x-a": "1" }), body: undefined, ...over },
      never,
    );
  const large = Buffer.alloc(300_000, "x");
  upstream.answer = (socket) => socket.write(httpAnswer(200, { "X-B": "2" }, large));
  for (let turn = 0; turn < 2; turn++) {
    const answer = await ask();
    const pieces: Buffer[] = [];
    await new Promise<void>((resolve, reject) => {
      answer.receive({
        data(piece) {
          pieces.push(piece);
          // Also within the bytes that complete the answer: the connection must be read again afterwards.
          answer.pause();
          setTimeout(() => answer.resume(), 1);
        },
        end: resolve,
        fail: reject,
      });
    });
    expect(Buffer.concat(pieces).equals(large)).toBe(true);
    expect(answer.lines).toContainEqual(["X-B", "2"]);
  }
  // Their answers have no body, whatever their heads say; a request without a body says so where it could have one.
  upstream.answer = (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  expect((await (await ask({ method: "HEAD" })).bytes()).length).toBe(0);
  upstream.answer = (socket) => socket.write(httpAnswer(200, {}, "{}"));
  await (await ask({ method: "POST" })).bytes();
  await (await ask({ method: "PATCH", body: new Uint8Array(100_000) })).bytes();
  expect(upstream.requests.map(({ headers }) => headers["content-length"])).toEqual([
    undefined,
    undefined,
    undefined,
    "0",
    "100000",
  ]);
  expect(upstream.accepted).toBe(1);

  upstream.answer = (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
  await expect((await ask()).bytes()).rejects.toMatchObject({ code: "ECONNRESET" });
  upstream.answer = (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
  (await ask()).destroy();
  await until(() => pool.size.open === 0, { what: "both connections are closed" });
});

test("an answer that is passed on can be paused on a connection that has read whole answers, and the other way round", async () => {
  const large = Buffer.alloc(8_000_000, "x");
  const passedOn = async () =>
    (await pool.take(never)).send(
      { method: "GET", path: "/v0/y", headers: new Headers(), body: undefined },
      never,
    );
  for (let turn = 0; turn < 2; turn++) {
    upstream.answer = (socket) => socket.write(httpAnswer(200, {}, "{}"));
    expect(await ask()).toMatchObject({ body: Buffer.from("{}") });
    upstream.answer = (socket) => socket.write(httpAnswer(200, {}, large));
    const answer = await passedOn();
    answer.pause();
    let seen = 0;
    const whole = new Promise<void>((resolve, reject) =>
      answer.receive({
        data(piece) {
          seen += piece.length;
        },
        end: resolve,
        fail: reject,
      }),
    );
    // What had been read before the pause; the rest stays in the sockets.
    const counts: number[] = [];
    const isQuiet = () => counts.push(seen) > 1 && counts.at(-1) === counts.at(-2);
    await until(isQuiet, { what: "nothing more arrives", intervalMs: 100 });
    expect(seen).toBeLessThan(large.length / 2);
    answer.resume();
    await whole;
    expect(seen).toBe(large.length);
  }
  expect(upstream.accepted).toBe(1);
});

test.each([
  ["GET /x HTTP/1.1\r\nHost: y", "/v0/y"],
  ["GET", "/v0/y HTTP/1.1\r\nHost: y"],
  ["GET", "/v0/y z"],
])("H2: a request that could be read as two is not sent (%s %s)", async (method, path) => {
  const held = await pool.take(never);
  const asking = held.send({ method, path, headers: new Headers(), body: undefined }, never);
  await expect(asking).rejects.toBeInstanceOf(TypeError);
  expect(upstream.requests).toEqual([]);
});
