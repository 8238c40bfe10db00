/** One request to the source and its answer, whatever happens to their connection. */
import type net from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AnswerPlace } from "../../../apps/proxy/answer-place";
import { askUpstream, askWhole } from "../../../apps/proxy/upstream";
import { SharedBudget } from "../../../core/http";
import { until } from "../../support/poll";
import { httpAnswer, type RawUpstream, rawUpstream } from "../../support/raw-upstream";

const TIMEOUT_MS = 2000;
/** Long enough for a busy machine to pass on what was sent before the silence. */
const SILENCE_MS = 500;

let upstream: RawUpstream;
/** As many connections as the source has accepted. */
let sockets: Set<net.Socket>;

beforeAll(async () => {
  upstream = await rawUpstream();
});
afterAll(() => upstream?.[Symbol.asyncDispose]());
beforeEach(() => {
  sockets = new Set();
  upstream.requests.length = 0;
});

/** Answers each request with these bytes, and then applies this to the connection. */
function answerWith(bytes: string | Buffer, then: (socket: net.Socket) => unknown = () => {}): void {
  upstream.answer = (socket) => {
    sockets.add(socket);
    socket.write(bytes);
    then(socket);
  };
}

const requestOf = (method: string) => ({
  method,
  address: upstream.url,
  path: "/v0/x",
  headers: new Map(),
  body: undefined,
});
const streams = new SharedBudget<never>({ most: 2, mostPer: { network: 1 } });
const open = (giveWay?: () => void, network = "192.0.2.1") => streams.open({ network }, { giveWay });
const stream = (method = "GET", signal = new AbortController().signal, timeoutMs = TIMEOUT_MS) =>
  askUpstream(requestOf(method), timeoutMs, signal, new AnswerPlace(open));
const whole = (method = "GET", timeoutMs = TIMEOUT_MS) => askWhole(requestOf(method), timeoutMs);

/** The expected answer. */
async function answered(asking: ReturnType<typeof stream>): Promise<Response> {
  const answer = await asking;
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}

test.for([
  ["GET", "HTTP/1.1 204 No Content\r\n\r\n", 204],
  ["DELETE", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", 205],
  ["GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", 304],
  ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", 200],
  ["GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200],
] as const)("an answer to a %s without a body ends with its head: %j", async ([method, bytes, status]) => {
  answerWith(bytes);
  const answer = await answered(stream(method));
  expect([answer.status, await answer.text()]).toEqual([status, ""]);
  expect(await whole(method)).toMatchObject({ status, bytes: new Uint8Array() });
  await until(async () => (await whole(method)) && upstream.requests.length > sockets.size + 1, {
    what: "its connection serves the next ones",
  });
});

test.for([
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\n\r\n",
  "HTTP/1.1 600 Odd\r\nContent-Length: 2\r\n\r\nok",
  "HTTP/1.1 999 Odd\r\n\r\n",
  "no HTTP at all\r\n\r\n",
])("an invalid HTTP answer is an error, and its connection is closed: %j", async (bytes) => {
  answerWith(bytes);
  expect(await stream()).toBe("unreachable");
  expect(await whole("POST")).toMatchObject({ failure: "unreachable" });
  expect(sockets.size).toBe(2);
  await until(() => [...sockets].every((socket) => socket.destroyed), { what: "the connections are closed" });
});

test.for([
  ["of known length", "Content-Length: 100\r\n\r\nhalf"],
  ["in chunks", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
  ["that goes on until the connection ends", "\r\nhalf"],
] as const)("a body %s that is cut off is not returned as a complete one", async ([, rest]) => {
  answerWith(`HTTP/1.1 200 OK\r\n${rest}`);
  const answer = await answered(stream());
  for (const socket of sockets) socket.resetAndDestroy();
  await expect(answer.text()).rejects.toThrow();
  // A source that breaks off some time after its head, without notice.
  answerWith(`HTTP/1.1 200 OK\r\n${rest}`, (socket) => setTimeout(() => socket.resetAndDestroy(), 100));
  expect(await whole("POST")).toEqual({ failure: "unreachable", status: 200 });
  // Until any of it has been passed on, the client can still get an error.
  answerWith(`HTTP/1.1 200 OK\r\n${rest}`, (socket) => setImmediate(() => socket.resetAndDestroy()));
  expect(await stream()).toBe("unreachable");
});

test("a source that stops sending in its head or its body times out", async () => {
  answerWith("HTTP/1.1 200 OK\r\nContent-");
  expect(await stream("GET", undefined, SILENCE_MS)).toBe("timeout");
  expect(await whole("POST", SILENCE_MS)).toEqual({ failure: "timeout", status: undefined });
  answerWith("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
  expect(await whole("POST", SILENCE_MS)).toEqual({ failure: "timeout", status: 200 });
  await until(() => [...sockets].every((socket) => socket.destroyed), { what: "the connections are closed" });
});

test("a long body arrives complete, however it is read, and releases the source when it is not read", async () => {
  const bytes = Buffer.alloc(5 << 20, "0123456789");
  answerWith(httpAnswer(200, {}, bytes));
  expect(Buffer.from(await (await answered(stream())).arrayBuffer()).equals(bytes)).toBe(true);
  const slow = (await answered(stream())).body!.getReader();
  const first = await slow.read();
  expect(first.value!.length).toBeLessThan(1 << 20);
  await slow.cancel();
  await until(() => [...sockets].some((socket) => socket.destroyed), { what: "the connection is closed" });
});

test("a GET has the body that its client gave it", async () => {
  answerWith(httpAnswer(200, {}, "ok"));
  const request = { ...requestOf("GET"), body: new TextEncoder().encode("why not") };
  const answer = await askUpstream(request, TIMEOUT_MS, new AbortController().signal, new AnswerPlace(open));
  expect(typeof answer === "string" ? answer : answer.status).toBe(200);
  expect(upstream.requests[0]!.body).toBe("why not");
});

test("an answer that its client reads slowly is in a share until it has ended, and gives way to those of other networks", async () => {
  const part = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf ");
  const ask = (network: string) =>
    askUpstream(
      requestOf("GET"),
      TIMEOUT_MS,
      new AbortController().signal,
      new AnswerPlace((giveWay) => open(giveWay, network)),
    );
  answerWith(part);
  const first = await answered(ask("192.0.2.1"));
  expect([streams.total, await ask("192.0.2.1")]).toEqual([1, "crowded"]);
  const second = await answered(ask("192.0.2.2"));
  const third = await answered(ask("198.51.100.1"));
  // The newest of the network around the first two.
  await expect(second.text()).rejects.toThrow();
  expect(streams.total).toBe(2);
  await first.body!.cancel();
  expect(streams.total).toBe(1);
  for (const socket of sockets) socket.write("whole");
  expect([await third.text(), streams.total]).toEqual(["half whole", 0]);
  answerWith(part, (socket) => setTimeout(() => socket.destroy(), 50));
  await expect(answered(ask("192.0.2.1")).then((answer) => answer.text())).rejects.toThrow();
  expect(streams.total).toBe(0);
});

test("a read without an answer takes a share after a while, or is broken off; what must not be broken off takes it before", async () => {
  answerWith("");
  const ask = (network: string, place = new AnswerPlace((giveWay) => open(giveWay, network))) =>
    askUpstream(requestOf("GET"), TIMEOUT_MS, new AbortController().signal, place);
  const first = ask("192.0.2.1");
  expect(streams.total).toBe(0);
  await until(() => streams.total === 1, { what: "it takes a share" });
  expect(await ask("192.0.2.1")).toBe("crowded");
  const kept = new AnswerPlace((giveWay) => open(giveWay, "192.0.2.2"));
  expect([kept.keep(), streams.total]).toEqual([true, 2]);
  const second = ask("192.0.2.2", kept);
  const third = ask("198.51.100.1");
  expect(await first).toBe("crowded");
  expect(streams.total).toBe(2);
  expect(new AnswerPlace((giveWay) => open(giveWay, "192.0.2.2")).keep()).toBe(false);
  for (const socket of sockets) socket.write(httpAnswer(200, {}, "ok"));
  expect(await (await answered(second)).text()).toBe("ok");
  expect(await (await answered(third)).text()).toBe("ok");
  expect(streams.total).toBe(0);
});

test("short answers get a length, and duplicate headers are merged", async () => {
  answerWith("HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nok");
  const answer = await answered(stream());
  expect([answer.headers.get("x-a"), answer.headers.get("content-length")]).toEqual(["1, 2", "2"]);
  expect(await answer.text()).toBe("ok");
});

test("a client that disconnects before the answer gets nothing, and one that disconnects later affects no other", async () => {
  answerWith("");
  const leave = new AbortController();
  const asking = stream("GET", leave.signal);
  await until(() => upstream.requests.length === 1, { what: "it is requested" });
  leave.abort();
  expect(await asking).toBe("aborted");
  await until(() => [...sockets].every((socket) => socket.destroyed), { what: "the connection is closed" });

  sockets.clear();
  const bytes = httpAnswer(200, {}, "ok");
  answerWith(bytes);
  const later = new AbortController();
  await (await answered(stream("GET", later.signal))).text();
  answerWith("");
  const next = stream();
  await until(() => upstream.requests.length === 3, { what: "the next one is on the same connection" });
  later.abort();
  for (const socket of sockets) socket.write(bytes);
  expect(await (await answered(next)).text()).toBe("ok");
  expect(sockets.size).toBe(1);
});
