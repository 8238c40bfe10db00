/** P2: requests and answers pass unchanged; the proxy's own answers are marked. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { until } from "../../support/poll";
import { metricOf, type ProxyStack, proxyStack } from "../../support/proxy-stack";
import { LIMITS } from "../../support/quota-limits";
import { httpAnswer, type RawUpstream, rawUpstream, sendRaw } from "../../support/raw-upstream";

/** Long enough for 15 MB on a busy machine. */
const TIMEOUT_MS = 2000;
/** Connected, so that its requests are in the quota ledger. */
const CONNECTED = "appConnected00000";

/** Any key: the proxy forwards no call to a base without one. */
const authorization = "Bearer patSome.key";
const fetch = (url: string, init: RequestInit = {}) =>
  globalThis.fetch(url, { ...init, headers: { authorization, ...(init.headers as Record<string, string>) } });

let upstream: RawUpstream;
let stack: ProxyStack;

beforeAll(async () => {
  upstream = await rawUpstream();
  stack = await proxyStack({
    UPSTREAMS: `api.airtable.com=${upstream.url},gone.airtable.com=http://127.0.0.1:1`,
    UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS),
  });
  await stack.connectUnchecked(CONNECTED);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  upstream.requests.length = 0;
  upstream.answer = (socket) => socket.write(httpAnswer(200, { "Content-Type": "application/json" }, "{}"));
});

/** Sends a request with exactly this line and these headers. */
function raw(line: string, headers: Record<string, string> = {}, body = "") {
  const lines = Object.entries({ Host: "proxy", Connection: "close", authorization, ...headers });
  const head = [`${line} HTTP/1.1`, ...lines.map(([name, value]) => `${name}: ${value}`)].join("\r\n");
  return sendRaw(stack.proxy.port, `${head}\r\n\r\n${body}`);
}

const own = (type: string) => ({ error: { type, message: expect.any(String) }, sender: "proxy" });

test.for([
  "GET /v0/appX/A%2Fb%20c%F0%9F%92%A1/?",
  "GET /v0/appX/T?fields%5B%5D=a+b&sort[0][field]=x%20y",
  "DELETE /v0/appX/T?records[]=rec1&records%5B%5D=rec2",
  "POST /v0/appX/T/listRecords?",
  "PUT /v0/meta/unknown//thing/",
  "OPTIONS /v0/appX/T",
])("%s arrives as it was sent", async (line) => {
  const [method, path] = line.split(" ");
  await raw(`${method} /api.airtable.com${path}`, { "Content-Type": "application/json" });
  expect(upstream.requests.map((request) => request.line)).toEqual([`${line} HTTP/1.1`]);
  expect(upstream.requests[0]!.headers).toMatchObject({
    "content-type": "application/json",
    host: new URL(upstream.url).host,
  });
});

test("headers and body arrive as they were sent, except the connection's own headers", async () => {
  const body = '{"fields": {"Name":"n\\u00e9"} , "odd":  true}';
  const headers = {
    authorization: "Bearer patX.y",
    "X-API-VERSION": "0.1.0",
    "Accept-Encoding": "br",
    Connection: "close, X-Mine",
    "X-Mine": "1",
    "Content-Length": String(body.length),
  };
  await raw("PATCH /api.airtable.com/v0/appX/T/rec1", headers, body);
  const [request] = upstream.requests;
  expect(request).toMatchObject({
    body,
    headers: { authorization: "Bearer patX.y", "x-api-version": "0.1.0", "accept-encoding": "br" },
  });
  expect(request!.headers).not.toHaveProperty("x-mine");
});

test.for(["GET", "POST"])(
  "the answer to a %s is returned unchanged: status, headers, compressed bytes",
  async (method) => {
    const bytes = gzipSync(JSON.stringify({ text: "x".repeat(5000) }));
    const headers = {
      "Content-Type": "application/json; charset=utf-8",
      "Content-Encoding": "gzip",
      "airtable-uncompressed-content-length": "5011",
      Vary: "Accept-Encoding",
      "Set-Cookie": "brw=1; domain=.airtable.com",
      "Strict-Transport-Security": "max-age=1",
    };
    upstream.answer = (socket) => socket.write(httpAnswer(422, headers, bytes));
    const answer = Buffer.from(
      await raw(`${method} /api.airtable.com/v0/appX/T`, { "Content-Length": "0" }),
      "latin1",
    );
    const head = answer.subarray(0, answer.indexOf("\r\n\r\n")).toString().toLowerCase();
    expect(answer.subarray(answer.indexOf("\r\n\r\n") + 4).equals(bytes)).toBe(true);
    expect(head).toMatch(/^http\/1\.1 422 /);
    expect(head).toContain("content-encoding: gzip");
    expect(head).toContain(`content-length: ${bytes.length}`);
    expect(head).toContain("airtable-uncompressed-content-length: 5011");
    expect(head).not.toContain("set-cookie");
    expect(head).not.toContain("strict-transport");
  },
);

test.for([
  ["GET", { "Content-Length": "2" }, "{}"],
  ["GET", { "Transfer-Encoding": "chunked" }, "2\r\n{}\r\n0\r\n\r\n"],
  ["HEAD", { "Content-Length": "2" }, "{}"],
] as const)(
  "a %s is forwarded without its body, which Airtable ignores: %o",
  async ([method, headers, body]) => {
    const answer = await raw(`${method} /api.airtable.com/v0/appX/T`, headers, body);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.requests).toHaveLength(1);
  },
);

test("a redirect is returned to the client", async () => {
  upstream.answer = (socket) => socket.write(httpAnswer(302, { Location: "http://elsewhere/" }, ""));
  const answer = await fetch(`${stack.endpoint}/v0/appX/T`, { redirect: "manual" });
  expect([answer.status, answer.headers.get("location")]).toEqual([302, "http://elsewhere/"]);
});

test("a 502 of the source is returned unchanged", async () => {
  upstream.answer = (socket) => socket.write(httpAnswer(502, {}, "<html>bad gateway</html>"));
  const answer = await fetch(`${stack.endpoint}/v0/appX/T`);
  expect([answer.status, await answer.text()]).toEqual([502, "<html>bad gateway</html>"]);
});

test.for(["GET", "PATCH"])(
  "if the source does not answer a %s in time, the proxy answers 504",
  async (method) => {
    upstream.answer = () => {};
    const answer = await fetch(`${stack.endpoint}/v0/appX/T/rec1`, { method });
    expect([answer.status, await answer.json()]).toEqual([504, own("PROXY_TIMEOUT")]);
  },
);

test.for(["GET", "POST"])(
  "if the source cannot be reached for a %s, the proxy answers 502",
  async (method) => {
    const answer = await fetch(`${stack.endpoint.replace("api.", "gone.")}/v0/appX/T`, { method });
    expect([answer.status, await answer.json()]).toEqual([502, own("PROXY_UPSTREAM_UNREACHABLE")]);
  },
);

test("half a body of the source is not returned as a complete one", async () => {
  let breakOff = () => {};
  upstream.answer = (socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    breakOff = () => socket.destroy();
  };
  const answer = await fetch(`${stack.endpoint}/v0/appX/T`);
  breakOff();
  await expect(answer.text()).rejects.toThrow();
});

test.for([
  ["/evil.com/v0/appX/T", 404, "PROXY_HOST_NOT_ALLOWED"],
  ["/", 404, "PROXY_HOST_NOT_ALLOWED"],
  ["http://evil.com/v0/appX/T", 404, "PROXY_HOST_NOT_ALLOWED"],
  ["/api.airtable.com/v0/../admin", 400, "PROXY_PATH_NOT_ALLOWED"],
  ["/api.airtable.com/v0/%2e%2e/admin", 400, "PROXY_PATH_NOT_ALLOWED"],
  ["/api.airtable.com/v0/x/..%2f..%2fadmin", 400, "PROXY_PATH_NOT_ALLOWED"],
  ["/api.airtable.com/oauth2/v1/token", 400, "PROXY_PATH_NOT_ALLOWED"],
] as const)("GET %s is not forwarded", async ([path, status, type]) => {
  const answer = await raw(`GET ${path}`);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toEqual(own(type));
  expect(upstream.requests).toEqual([]);
});

test("a header that hides another one is refused", async () => {
  await raw("GET /api.airtable.com/v0/appX/T", { "X-A": "1\rX-Injected: 2" }).catch(() => "");
  for (const { headers } of upstream.requests) expect(headers).not.toHaveProperty("x-injected");
});

test.for([
  ["declared", (size: number) => new Uint8Array(size)],
  [
    "counted",
    (size: number) =>
      new ReadableStream({
        start(controller) {
          for (let sent = 0; sent < size; sent += 1 << 20) controller.enqueue(new Uint8Array(1 << 20));
          controller.close();
        },
      }),
  ],
] as const)("a body of 15 MB passes, and one over 16 MB is refused: %s", async ([, bodyOf]) => {
  const post = (size: number) => fetch(`${stack.endpoint}/v0/appX/T`, { method: "POST", body: bodyOf(size) });
  expect((await post(15 << 20)).status).toBe(200);
  expect(upstream.requests[0]!.body.length).toBe(15 << 20);
  const answer = await post(17 << 20);
  expect([answer.status, await answer.json()]).toEqual([413, own("PROXY_BODY_TOO_LARGE")]);
  expect(upstream.requests).toHaveLength(1);
});

test("a URL of 16,000 characters after the proxy's address is accepted", async () => {
  const query = "x".repeat(16_000);
  const answer = await fetch(`${stack.endpoint}/v0/appX/T?${query}`);
  expect(answer.status).toBe(200);
  expect(upstream.requests[0]!.line).toHaveLength(`GET /v0/appX/T?${query} HTTP/1.1`.length);
});

test("the proxy's health has paths of its own", async () => {
  const answer = await fetch(`http://localhost:${stack.proxy.port}/readyz`);
  expect(await answer.json()).toEqual({ status: "ready" });
  expect(await metricOf(stack, "basetide_proxy_request_seconds_count")).toBeGreaterThan(0);
  expect(upstream.requests).toEqual([]);
});

test("a client that disconnects ends its read at the source", async () => {
  let isOver = false;
  upstream.answer = (socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
    socket.on("close", () => {
      isOver = true;
    });
  };
  await sendRaw(
    stack.proxy.port,
    "GET /api.airtable.com/v0/appX/T HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer patX.y\r\n\r\n",
    (answer) => answer.includes("half"),
  );
  await until(() => isOver, { what: "the source's connection is closed" });
});

test("a base that no account has connected is not in the quota ledger; a connected one is, with its metadata calls", async () => {
  const granted = () => metricOf(stack, "basetide_quota_grants_total");
  const before = await granted();
  for (const path of ["appX/T", "meta/bases/appX/tables", "meta/whoami"])
    await fetch(`${stack.endpoint}/v0/${path}`);
  expect(await granted()).toBe(before);
  const paths = [`${CONNECTED}/T`, `meta/bases/${CONNECTED}/tables`, `bases/${CONNECTED}/webhooks`];
  for (const path of paths) await fetch(`${stack.endpoint}/v0/${path}`);
  expect(await granted()).toBe(before + 3);
});

test("a 429 of the source is returned unchanged; during a pause that is longer than the wait, the proxy answers 429 itself", async () => {
  const body =
    '{"errors":[{"error":"RATE_LIMIT_REACHED","message":"Rate limit exceeded. Please try again later"}]}';
  await stack.connectUnchecked("appLimited0000000");
  // Enough to show that the base's limit may have been reached, and not only the key's.
  for (let call = 0; call < 3; call++) await fetch(`${stack.endpoint}/v0/appLimited0000000/T`);
  // It does not make the pause longer: one answer must not stop all clients for a day.
  const headers = { "Content-Type": "application/json", "Retry-After": "86400" };
  upstream.answer = (socket) => socket.write(httpAnswer(429, headers, body));
  const limited = await fetch(`${stack.endpoint}/v0/appLimited0000000/T`);
  expect([limited.status, await limited.text()]).toEqual([429, body]);
  expect(limited.headers.get("retry-after")).toBe("86400");
  const next = await fetch(`${stack.endpoint}/v0/appLimited0000000/T`);
  expect([next.status, await next.json()]).toEqual([
    429,
    {
      ...own("RATE_LIMIT_REACHED"),
      errors: [{ error: "RATE_LIMIT_REACHED", message: expect.stringContaining("was not forwarded") }],
    },
  ]);
  const retryAfterSeconds = Number(next.headers.get("retry-after"));
  expect(retryAfterSeconds).toBeGreaterThan(20);
  expect(retryAfterSeconds).toBeLessThanOrEqual(31);
  expect(upstream.requests).toHaveLength(4);
});

test("calls during a pause that is shorter than the wait all succeed, each after the pause", async () => {
  const baseId = "appPaused00000000";
  await stack.connectUnchecked(baseId);
  const endpoint = `${stack.endpoint}/v0/${baseId}/T`;
  // The key is accepted from here on.
  expect((await fetch(endpoint)).status).toBe(200);
  const pauseMs = TIMEOUT_MS - 500;
  const pausedAt = performance.now();
  await stack.ctx
    .db`select quota_block(${`airtable:${baseId}`}, ${LIMITS}::source_limits, ${pauseMs}, '', 5)`;
  const arrivedAfterMs: number[] = [];
  upstream.answer = (socket) => {
    arrivedAfterMs.push(performance.now() - pausedAt);
    socket.write(httpAnswer(200, {}, "{}"));
  };
  const body = JSON.stringify({ fields: {} });
  const calls = Array.from({ length: 12 }, () => fetch(endpoint, { method: "POST", body }));
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect(statuses).toEqual(Array(12).fill(200));
  expect(arrivedAfterMs).toHaveLength(12);
  expect(Math.min(...arrivedAfterMs)).toBeGreaterThanOrEqual(pauseMs - 1);
});

test("every request is forwarded beyond the monthly cap, since the source decides on it", async () => {
  const body =
    '{"errors":[{"error":"PUBLIC_API_BILLING_LIMIT_EXCEEDED","message":"API billing plan limit exceeded"}]}';
  await stack.connectUnchecked("appCapped00000000");
  upstream.answer = (socket) => socket.write(httpAnswer(429, {}, body));
  for (let time = 0; time < 2; time++) {
    expect((await fetch(`${stack.endpoint}/v0/appCapped00000000/T`)).status).toBe(429);
  }
});
