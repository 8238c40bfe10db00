/** Bodies of requests over real connections: what they take, how long they are waited for, and when they give way. */
import net from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { type BodyFailure, IncomingBody, listen, SharedBudget } from "../../core/http";
import { until } from "../support/poll";

const MOST = 1_000_000;

interface Received {
  path: string;
  result: number | BodyFailure;
}

/** A listener that receives bodies from a budget, each client's network by its path. */
function receiver(options: { most?: number; graceMs?: number; isStreamed?: boolean } = {}) {
  const { most = 10 * MOST, graceMs = 20_000, isStreamed = false } = options;
  const budget = new SharedBudget({ most, mostPer: { network: most } });
  const received: Received[] = [];
  const app = {
    async fetch(request: Request) {
      const path = new URL(request.url).pathname.slice(1);
      let body: IncomingBody | undefined;
      const share = budget.open({ network: path }, { giveWay: () => body!.giveWay() });
      using opened = new IncomingBody(request, share, { mostBytes: MOST, graceMs });
      body = opened;
      const whole = isStreamed
        ? await new Response(opened.stream()).bytes().catch((error) => error.code as BodyFailure)
        : await opened.whole();
      received.push({ path, result: typeof whole === "string" ? whole : whole.length });
      return new Response(typeof whole === "string" ? whole : "whole");
    },
  };
  const listener = listen(app, { port: 0, portVariable: "PORT", host: "127.0.0.1", maxBodyBytes: 2 * MOST });
  onTestFinished(() => listener.stop());
  return { port: listener.port, budget, received };
}

/** Sends the head of a request and the beginning of its body. */
function begin(port: number, path: string, announced: number | "chunked", first: string) {
  const socket = net.connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  const length = announced === "chunked" ? "Transfer-Encoding: chunked" : `Content-Length: ${announced}`;
  socket.write(`POST /${path} HTTP/1.1\r\nHost: localhost:${port}\r\n${length}\r\n\r\n${first}`);
  return socket;
}

test.for([[false], [true]])(
  "bodies take what has arrived, whatever was announced; streamed: %s",
  async ([isStreamed]) => {
    const { port, budget, received } = receiver({ isStreamed: isStreamed! });
    for (let index = 0; index < 20; index++) begin(port, `${index}`, MOST, "x".repeat(100));
    await until(() => budget.total === 2000, { what: "what has arrived is counted" });
    const whole = begin(port, "whole", MOST, "y".repeat(MOST));
    await until(() => received.length === 1, { what: "a whole body" });
    expect(received).toEqual([{ path: "whole", result: MOST }]);
    whole.destroy();
    await until(() => budget.total === 2000, { what: "its memory is given back" });
  },
);

test("a body that is announced to be small takes nothing before it is complete", async () => {
  const { port, budget, received } = receiver();
  for (let index = 0; index < 20; index++) begin(port, `${index}`, 10_000, "x".repeat(9999));
  begin(port, "whole", 10_000, "x".repeat(10_000));
  await until(() => received.length === 1, { what: "a whole body" });
  expect([received[0]!.result, budget.total]).toEqual([10_000, 0]);
});

test("clients that are silent or too slow are told so, and their connections closed", async () => {
  const { port, budget, received } = receiver({ graceMs: 150 });
  const forms = { "10000": "x", "1000000": "x", chunked: "1\r\nx\r\n" };
  const clients = Object.entries(forms).flatMap(([announced, drip]) =>
    ["", drip].map((sent) => {
      const length = announced === "chunked" ? announced : Number(announced);
      const socket = begin(port, "slow", length, sent);
      const client = { socket, sent, answer: "", isClosed: false };
      socket.on("data", (bytes) => (client.answer += bytes));
      socket.on("close", () => (client.isClosed = true));
      return client;
    }),
  );
  const dripping = setInterval(() => {
    for (const { socket, sent } of clients) if (socket.writable) socket.write(sent);
  }, 20);
  await until(() => clients.every(({ isClosed }) => isClosed), { what: "all are closed" });
  clearInterval(dripping);
  expect(clients.map(({ answer }) => answer.split("\r\n\r\n")[1])).toEqual(Array(6).fill("late"));
  expect([received.map(({ result }) => result), budget.total]).toEqual([Array(6).fill("late"), 0]);
});

test("a client that keeps sending is waited for, for longer than it may be silent", async () => {
  const { port, received } = receiver({ graceMs: 150 });
  // 100 kB are waited for more than a second.
  const part = "x".repeat(100_000);
  const socket = begin(port, "steady", MOST, part);
  const sending = setInterval(() => {
    if (socket.bytesWritten < MOST) socket.write(part);
  }, 100);
  await until(() => received.length === 1, { what: "the body is complete" });
  clearInterval(sending);
  expect(received[0]!.result).toBe(MOST);
});

test("a full budget takes a small body in the place of the largest client's, and a client may announce nothing", async () => {
  const { port, budget, received } = receiver({ most: 2 * MOST });
  const half = "x".repeat(MOST / 2);
  for (const path of ["192.0.2.1", "192.0.2.1", "192.0.2.1", "198.51.100.7"]) begin(port, path, MOST, half);
  await until(() => budget.total === 2 * MOST, { what: "the budget is full" });
  begin(port, "203.0.113.1", "chunked", `186a0\r\n${"y".repeat(100_000)}\r\n0\r\n\r\n`);
  await until(() => received.length === 2, { what: "one gives way, and one is received" });
  expect(received.toSorted((a, b) => a.path.localeCompare(b.path))).toEqual([
    { path: "192.0.2.1", result: "full" },
    { path: "203.0.113.1", result: 100_000 },
  ]);
});

test("a body that is too large, and one that breaks off, are not received", async () => {
  const { port, budget, received } = receiver();
  begin(port, "announced", MOST + 1, "");
  begin(port, "chunked", "chunked", `f4241\r\n${"x".repeat(MOST + 1)}\r\n0\r\n\r\n`);
  begin(port, "broken", MOST, "x").end();
  await until(() => received.length === 3, { what: "all are given up" });
  expect(received.map(({ path, result }) => `${path}: ${result}`).sort()).toEqual([
    "announced: too_large",
    "broken: broken",
    "chunked: too_large",
  ]);
  expect(budget.total).toBe(0);
});
