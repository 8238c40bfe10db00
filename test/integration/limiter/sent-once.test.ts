/**
 * I4: each request to the source is sent once. When a kept connection breaks before the answer, no part of ours sends
 * the request again without another permit.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SourceTable } from "../../../core/source";
import { createAirtable } from "../../../core/source/airtable";
import { until } from "../../support/poll";
import { metricOf, type ProxyStack, proxyStack } from "../../support/proxy-stack";
import { httpAnswer, type RawUpstream, rawUpstream, sendRaw } from "../../support/raw-upstream";

/** Connected, so that its requests are in the quota ledger. */
const CONNECTED = "appConnected00000";
const table: SourceTable = { id: "tblA", name: "A", primaryFieldId: "fldA", fields: [] };
const never = new AbortController().signal;

/** Any key: the proxy forwards no call to a base without one. */
const authorization = "Bearer patSome.key";
const fetch = (url: string, init: RequestInit = {}) =>
  globalThis.fetch(url, { ...init, headers: { authorization, ...(init.headers as Record<string, string>) } });

let upstream: RawUpstream;
let stack: ProxyStack;
/** Connections on which an answer has been sent. */
let served: WeakSet<object>;

beforeAll(async () => {
  upstream = await rawUpstream();
  stack = await proxyStack({ UPSTREAMS: `api.airtable.com=${upstream.url}` });
  await stack.connectUnchecked(CONNECTED);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  upstream.requests.length = 0;
  served = new WeakSet();
});

type Break = "reset" | "end";

/** Answers the first request of each connection, and closes it at the next one. */
function breakKept(how: Break, body = "{}"): void {
  upstream.answer = (socket) => {
    if (!served.has(socket)) {
      served.add(socket);
      socket.write(httpAnswer(200, { "Content-Type": "application/json" }, body));
    } else if (how === "reset") socket.resetAndDestroy();
    else socket.end();
  };
}

/** Answers each request, and closes its connection shortly after: often while the next one is in transit. */
function closeIdle(): void {
  upstream.answer = (socket) => {
    if (!served.has(socket)) socket.write(httpAnswer(200, { "Content-Type": "application/json" }, "{}"));
    served.add(socket);
    setImmediate(() => socket.destroy());
  };
}

/** Leaves the proxy one kept connection that has been used, and no counted request. */
async function warm(): Promise<void> {
  // Connections that other tests have left are closed here.
  await until(async () => (await fetch(`${stack.endpoint}/v0/${CONNECTED}/T`)).status === 200, {
    what: "the proxy has a connection",
  });
  upstream.requests.length = 0;
}

const linesOf = () => upstream.requests.map(({ line }) => line);

describe("by the proxy", () => {
  const granted = () => metricOf(stack, "basetide_quota_grants_total");
  const ask = (method: string, path: string, body?: string) =>
    fetch(`${stack.endpoint}/v0/${path}`, { method, ...(body === undefined ? {} : { body }) });

  test.for([
    ["GET", `${CONNECTED}/T`],
    ["HEAD", `${CONNECTED}/T`],
    ["GET", `bases/${CONNECTED}/webhooks/achX/payloads`],
    ["POST", `${CONNECTED}/T/listRecords`],
  ] as const)("a %s of %s on a closed connection is sent again, within the quota", async ([method, path]) => {
    for (const how of ["reset", "end"] as const) {
      breakKept(how);
      await warm();
      const before = await granted();
      const answer = await ask(method, path, method === "POST" ? "{}" : undefined);
      expect([answer.status, await answer.text()]).toEqual([200, method === "HEAD" ? "" : "{}"]);
      const line = `${method} /v0/${path} HTTP/1.1`;
      expect(linesOf()).toEqual([line, line]);
      expect(await granted()).toBe(before + 2);
    }
  });

  test.for([
    ["POST", `${CONNECTED}/T`],
    ["PATCH", `${CONNECTED}/T/rec1`],
    ["PUT", `${CONNECTED}/T/rec1`],
    ["DELETE", `${CONNECTED}/T/rec1`],
    ["POST", `bases/${CONNECTED}/webhooks`],
    ["DELETE", `bases/${CONNECTED}/webhooks/achX`],
    ["PATCH", `meta/bases/${CONNECTED}/tables/tblX`],
  ] as const)("a %s of %s on a closed connection is a 502, and was sent once", async ([method, path]) => {
    for (const how of ["reset", "end"] as const) {
      breakKept(how);
      await warm();
      const before = await granted();
      const answer = await ask(method, path, method === "DELETE" ? undefined : "{}");
      expect([answer.status, await answer.json()]).toMatchObject([
        502,
        { error: { type: "PROXY_UPSTREAM_UNREACHABLE" }, sender: "proxy" },
      ]);
      expect(linesOf()).toEqual([`${method} /v0/${path} HTTP/1.1`]);
      expect(await granted()).toBe(before + 1);
    }
  });

  test("a request that could create something outside of a base is not sent again either", async () => {
    breakKept("reset");
    await warm();
    expect((await ask("POST", "meta/bases", "{}")).status).toBe(502);
    expect(linesOf()).toEqual(["POST /v0/meta/bases HTTP/1.1"]);
  });

  test("a read whose new connection is closed, too, is a 502 after two requests, both counted", async () => {
    breakKept("reset");
    await warm();
    const before = await granted();
    upstream.answer = (socket) => socket.resetAndDestroy();
    expect((await ask("GET", `${CONNECTED}/T`)).status).toBe(502);
    expect(linesOf()).toHaveLength(2);
    expect(await granted()).toBe(before + 2);
  });

  test("when idle connections are closed, the source gets as many requests as the limiter has granted", async () => {
    closeIdle();
    const before = await granted();
    const methods = ["GET", "PATCH", "GET", "DELETE", "GET", "PUT", "GET", "POST", "GET", "GET"];
    const statuses: number[] = [];
    for (const method of methods) statuses.push((await ask(method, `${CONNECTED}/T/rec1`)).status);
    expect(linesOf()).toHaveLength((await granted()) - before);
    for (const [index, method] of methods.entries()) {
      if (method === "GET") expect(statuses[index]).toBe(200);
    }
    for (const method of ["PATCH", "DELETE", "PUT", "POST"]) {
      expect(linesOf().filter((line) => line.startsWith(`${method} `))).toHaveLength(1);
    }
  });

  test("a stale connection is counted where it made a request fail, and not where the request was repeated", async () => {
    const stale = async () =>
      /^basetide_proxy_upstream_errors_total\{[^}]*kind="stale"[^}]*\} (\d+)/m.exec(
        await (await fetch(`http://localhost:${stack.proxy.port}/metrics`)).text(),
      )?.[1];
    breakKept("reset");
    const before = Number((await stale()) ?? 0);
    for (const method of ["GET", "DELETE"]) {
      await warm();
      await ask(method, `${CONNECTED}/T/rec1`);
    }
    expect(Number(await stale())).toBe(before + 1);
  });

  test.for(["DELETE", "OPTIONS", "PATCH"])(
    "the body of a %s is not sent as a request of its own, whatever it contains",
    async (method) => {
      upstream.answer = (socket) => socket.write(httpAnswer(200, {}, "{}"));
      const body = "GET /v0/meta/whoami HTTP/1.1\r\nHost: x\r\n\r\n";
      const head = `Host: x\r\nAuthorization: ${authorization}\r\nConnection: close\r\nContent-Length: ${body.length}`;
      const line = `${method} /v0/${CONNECTED}/T/rec1 HTTP/1.1`;
      await sendRaw(stack.proxy.port, `${line.replace(" ", " /api.airtable.com")}\r\n${head}\r\n\r\n${body}`);
      expect(upstream.requests).toMatchObject([{ line, body }]);
    },
  );
});

describe("by the adapter", () => {
  const connect = () =>
    createAirtable({ upstreams: { "api.airtable.com": upstream.url }, timeoutMs: 5000 }).connect("patA.b");
  type Connection = ReturnType<typeof connect>;
  const calls: Record<string, (connection: Connection) => Promise<unknown>> = {
    whoami: (at) => at.whoami(never),
    listBases: (at) => at.listBases(never),
    getSchema: (at) => at.getSchema("appA", never),
    listPage: (at) => at.listPage("appA", table, {}, never),
    listByIds: (at) => at.listByIds("appA", table, ["recA"], {}, never),
    getRecord: (at) => at.getRecord("appA", "tblA", "recA", never),
    listWebhooks: (at) => at.changeFeed!.listWebhooks("appA", never),
    createWebhook: (at) => at.changeFeed!.createWebhook("appA", { notificationUrl: "https://x" }, never),
    refreshWebhook: (at) => at.changeFeed!.refreshWebhook("appA", "achA", never),
    enableNotifications: (at) => at.changeFeed!.enableNotifications("appA", "achA", true, never),
    listPayloads: (at) => at.changeFeed!.listPayloads("appA", "achA", 1, never),
    deleteWebhook: (at) => at.changeFeed!.deleteWebhook("appA", "achA", never),
  };

  test.for(Object.keys(calls))("%s arrives as often as it was called", async (name) => {
    for (const how of ["reset", "end"] as const) {
      breakKept(how, '{"records":[]}');
      const connection = connect();
      upstream.requests.length = 0;
      for (let time = 1; time <= 4; time++) {
        // Leaves a connection on which the call may be sent.
        await until(() => connection.listPage("appWarm", table, {}, never).then(Boolean, () => false), {
          what: "a connection is kept",
        });
        // The result of the call does not matter here.
        await calls[name]!(connection).catch(() => {});
        expect(linesOf().filter((line) => !line.includes("appWarm"))).toHaveLength(time);
      }
    }
  });
});
