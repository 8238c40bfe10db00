/** A connection that closes after an answer: the answer says so, or the client sends its next request on it, in vain. */
import { connect } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { forwarded } from "../../../core/http";
import { type Listener, listen } from "../../../core/http/listen";
import { node } from "../../support/node";

vi.setConfig({ testTimeout: 60_000 });

function start(answer: (request: Request) => Response | Promise<Response>): Listener {
  const listener = listen({ fetch: answer }, { port: 0, portVariable: "PORT", host: "127.0.0.1" });
  onTestFinished(() => listener.stop());
  return listener;
}

/** Sends the request, and returns all until the server closes the connection. */
function closed(port: number, request: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(port, "127.0.0.1", () => socket.write(request));
  let received = "";
  socket.on("data", (data) => {
    received += data;
  });
  socket.on("error", reject);
  socket.on("end", () => resolve(received));
  return promise;
}

test.for(["close", "Close", "TE, close"])(
  "a client that asks for Connection: %s reads it in the answer",
  async (options) => {
    const { port } = start(async (request) => {
      const text = await request.text();
      return request.url.endsWith("/own") ? new Response(text) : forwarded(new Response(text));
    });
    for (const path of ["/own", "/forwarded"]) {
      const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: ${options}\r\nContent-Length: 2\r\n\r\n`;
      const answer = await closed(port, `${head}ok`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is);
      expect(answer).toMatch(/\r\n\r\nok$/);
    }
    const kept = await fetch(`http://127.0.0.1:${port}/own`, { method: "POST", body: "ok" });
    expect(kept.headers.get("connection")).not.toBe("close");
  },
);

test("Node's agent, which relies on that, loses no request", async ({ skip }) => {
  skip(node === undefined, "there is no Node");
  const { port } = start(async (request) => new Response(await request.text()));
  const program = `
    const http = require("node:http");
    const agent = new http.Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
    const send = () => new Promise((resolve) => {
      const options = { port: ${port}, host: "127.0.0.1", method: "POST", agent, headers: { connection: "close" } };
      const request = http.request(options, (answer) => answer.resume().on("end", () => resolve("answered")));
      request.on("error", (error) => resolve(error.message)).end("{}");
    });
    const many = async () => { for (let n = 0; n < 100; n++) { found.add(await send()); await null; } };
    const found = new Set();
    Promise.all(Array.from({ length: 10 }, many)).then(() => console.log([...found].join()));`;
  const child = Bun.spawn([node!, "-e", program], { stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toBe("answered\n");
});

test("an answer of a server that stops closes its connection", async () => {
  const [begun, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const listener = start(async () => {
    begun.resolve();
    await finish.promise;
    return new Response("last");
  });
  const received = closed(listener.port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await begun.promise;
  const stopped = listener.stop();
  finish.resolve();
  expect(await received).toMatch(/connection: close\r\n.*last$/is);
  await stopped;
});
