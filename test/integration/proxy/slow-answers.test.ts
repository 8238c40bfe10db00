/** Requests whose answers take long: each holds a connection to the source, and a proxy has a limited number of them. */
import net from "node:net";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";

let stack: ProxyStack;
beforeAll(async () => {
  stack = await proxyStack({ CLIENT_IP_HEADER: "x-client" });
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => stack.sandbox.control.clearFaults());

/** More than the connections of a proxy to one address. */
const MANY = 2100;
/** Long enough for what is refused meanwhile. */
const ANSWERED_MS = 10_000;
const BODY = JSON.stringify({ fields: { Name: "mine" } });

const createBase = () =>
  stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [{ name: "Tasks", fields: [{ name: "Name", type: "singleLineText" }] }],
  });

/** Sends a request. @param onStatus called with the status of its answer */
function begin(method: string, baseId: string, from: string, onStatus: (status: number) => void): net.Socket {
  const socket = net.connect(stack.proxy.port, "127.0.0.1", () => {
    const body = method === "GET" ? "" : BODY;
    const head = `${method} /api.airtable.com/v0/${baseId}/Tasks HTTP/1.1\r\nHost: localhost\r\nX-Client: ${from}\r\nAuthorization: Bearer ${stack.sandbox.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    socket.write(head + body);
  });
  socket.on("data", (bytes) => onStatus(Number(bytes.toString("latin1").slice(9, 12))));
  return socket.on("error", () => {});
}

test.for(["GET", "POST"])(
  "many %ss to a base that is not connected keep no client from the source",
  {
    timeout: 120_000,
  },
  async (method) => {
    const owned = createBase();
    await stack.connect(owned);
    const strange = createBase();
    stack.sandbox.control.addFault({ kind: "hang", base: strange, delayMs: ANSWERED_MS });
    const statuses: number[] = [];
    const sockets = Array.from({ length: MANY }, (_, at) =>
      begin(method, strange, `192.0.2.${at % 60}`, (status) => statuses.push(status)),
    );
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    const arrived = () => stack.sandbox.control.log(strange).length;
    await until(() => statuses.length > 100, {
      what: "strangers' requests are refused",
      timeoutMs: 60_000,
    });
    expect(new Set(statuses)).toEqual(new Set([503]));
    expect(arrived()).toBeLessThan(2048);
    const { status } = await fetch(`${stack.endpoint}/v0/${owned}/Tasks`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${stack.sandbox.key}`,
        "content-type": "application/json",
        "x-client": "203.0.113.1",
      },
      body: BODY,
      signal: AbortSignal.timeout(15_000),
    });
    expect(status).toBe(200);
  },
);
