/**
 * Random bytes sent to the proxy's port: it stays up, contacts only the configured upstream below its `/v0`, and its
 * own answers have an error type.
 */
import net from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { anyText, fuzz } from "../../support/fuzz";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";
import { httpAnswer, type RawUpstream, rawUpstream } from "../../support/raw-upstream";

/** Requests that are not answered by then are treated as incomplete. ms */
const PATIENCE_MS = 150;
const TRAP = "trap:1";
const INJECTED = "x-injected";

let upstream: RawUpstream;
/** Not configured: a request that arrives here was misdirected. */
let trap: RawUpstream;
let stack: ProxyStack;

beforeAll(async () => {
  [upstream, trap] = await Promise.all([rawUpstream(), rawUpstream()]);
  stack = await proxyStack({
    UPSTREAMS: `api.airtable.com=${upstream.url},gone.airtable.com=http://127.0.0.1:1`,
    UPSTREAM_TIMEOUT_MS: "2000",
  });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
  await trap?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  upstream.answer = (socket) => socket.write(httpAnswer(200, {}, "{}"));
});

const host = fc.constantFrom(
  "api.airtable.com",
  "API.Airtable.com",
  "gone.airtable.com",
  "api.airtable.com:443",
  "api.airtable.com.",
  "api.airtable.com@trap:1",
  `user:pw@${TRAP}`,
  TRAP,
  "constructor",
  "__proto__",
  "[::1]",
  "",
);
const segment = fc.oneof(
  fc.constantFrom(
    "v0",
    "..",
    ".",
    "",
    "%2e%2e",
    "%2E%2e%2f..",
    "..%5c",
    "%252e%252e",
    "appX",
    "T",
    "rec1",
    "meta",
  ),
  fc.constantFrom(
    "%00",
    "%",
    "%zz",
    "%ff",
    "%0d%0aX-Injected:%201",
    "\t",
    "é",
    "\\..\\",
    ";x",
    "a b",
    "#",
    "?a=b",
  ),
  fc.constantFrom("listRecords", "uploadAttachment", "sync", "bases", "tables", "x".repeat(5000)),
  fc.webSegment(),
  anyText,
);
const tail = fc.array(segment, { maxLength: 6 }).map((parts) => parts.join("/"));
const path = fc.oneof(
  { weight: 6, arbitrary: tail.map((rest) => `/api.airtable.com/v0/appX/${rest}`) },
  { weight: 3, arbitrary: fc.tuple(host, tail).map(([name, rest]) => `/${name}/v0/${rest}`) },
  { weight: 2, arbitrary: fc.tuple(host, tail).map(([name, rest]) => `//${name}//${rest}`) },
  { weight: 2, arbitrary: fc.tuple(host, tail).map(([name, rest]) => `http://${name}/${rest}`) },
  {
    weight: 1,
    arbitrary: tail.map((rest) => `http://${TRAP}/api.airtable.com/v0/${rest}`),
  },
  { weight: 1, arbitrary: fc.constantFrom("*", TRAP, "/", "", "/healthz", "/metrics/../healthz", "/?") },
);
const method = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS") },
  {
    weight: 2,
    arbitrary: fc.constantFrom("TRACE", "CONNECT", "patch", "QUERY", "PRI", "", "A B", "G\u00e9T"),
  },
);
const text = fc.stringMatching(/^[ -~]{0,20}$/);
const header = fc.oneof(
  fc.tuple(fc.constantFrom("Authorization", "Content-Type", "Accept-Encoding", "Cookie", "Range"), text),
  fc.constantFrom<[string, string][]>(
    ["Connection", 'close, X-Mine, "a b", host'],
    ["Connection", "upgrade"],
    ["Upgrade", "websocket"],
    ["Expect", "100-continue"],
    ["Content-Encoding", "gzip"],
    ["Content-Encoding", "constructor"],
    ["X-Forwarded-Host", TRAP],
    ["Forwarded", `host=${TRAP}`],
    ["Host", TRAP],
    ["Proxy-Connection", "keep-alive"],
    ["TE", "trailers"],
    ["X-Long", "x".repeat(20_000)],
    ["X-Huge", "x".repeat(80_000)],
    ["Transfer-Encoding", "gzip, chunked"],
    ["Content-Length", "-1"],
    ["Content-Length", "99999999999999999999"],
    ["Content-Length", "5, 5"],
  ),
  fc.tuple(fc.stringMatching(/^X-[!-~]{0,10}$/), anyText),
);
const body = fc.oneof(
  fc.constantFrom("", "{}", '{"records":[{"id":"rec1","fields":{}}]}', "x".repeat(70_000)),
  anyText,
);
const framing = fc.constantFrom("length", "chunked", "both", "short", "long", "badChunk", "none");

/** The bytes of a request, sent as latin1. */
const requestBytes = fc
  .record({
    method,
    path,
    headers: fc.array(header, { maxLength: 4 }),
    body,
    framing,
    hasHost: fc.boolean(),
    // Without one no call to a base is forwarded.
    hasKey: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
  })
  .map(({ method, path, headers, body, framing, hasHost, hasKey }) => {
    const sent = Buffer.from(body).toString("latin1");
    const lines = [`${method} ${toTrap(path)} HTTP/1.1`, ...(hasHost ? ["Host: proxy"] : [])];
    if (hasKey) lines.push("Authorization: Bearer patSome.key");
    for (const [name, value] of headers) lines.push(`${name}: ${toTrap(value)}`);
    const chunks = `${sent.length.toString(16)}\r\n${sent}\r\n0\r\n\r\n`;
    const length = sent.length + (framing === "long" ? 3 : framing === "short" ? -1 : 0);
    if (["length", "both", "short", "long"].includes(framing)) lines.push(`Content-Length: ${length}`);
    if (["chunked", "both", "badChunk"].includes(framing)) lines.push("Transfer-Encoding: chunked");
    const end =
      framing === "badChunk" ? `zz\r\n${sent}` : lines.includes("Transfer-Encoding: chunked") ? chunks : sent;
    return `${lines.join("\r\n")}\r\n\r\n${end}`;
  });

/** The trap's own address is known only when the test runs. */
function toTrap(text: string): string {
  return text.replaceAll(TRAP, trap ? new URL(trap.url).host : TRAP);
}

interface Sent {
  bytes: string;
  /** Where the bytes are split into packets. */
  cuts: number[];
  /** Disconnects once the bytes are sent. */
  isAborted: boolean;
}

const exchange: fc.Arbitrary<Sent> = fc.record({
  bytes: fc.oneof(
    { weight: 10, arbitrary: requestBytes },
    { weight: 2, arbitrary: fc.tuple(requestBytes, requestBytes).map((both) => both.join("")) },
    {
      weight: 2,
      arbitrary: fc.tuple(requestBytes, fc.nat()).map(([all, at]) => all.slice(0, at % all.length)),
    },
    {
      weight: 1,
      arbitrary: fc.uint8Array({ maxLength: 200 }).map((all) => Buffer.from(all).toString("latin1")),
    },
  ),
  cuts: fc.array(fc.nat({ max: 300 }), { maxLength: 3 }),
  isAborted: fc.oneof(
    { weight: 4, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  ),
});

/**
 * Sends it, and returns what came back until the connection was closed, an answer was complete, or the time was over.
 */
function send({ bytes, cuts, isAborted }: Sent): Promise<string> {
  const whole = Buffer.from(bytes, "latin1");
  const edges = [0, ...cuts.map((cut) => cut % (whole.length + 1)).sort((a, b) => a - b), whole.length];
  return new Promise((resolve) => {
    let answer = "";
    const socket = net.connect(stack.proxy.port, "127.0.0.1");
    const patience = setTimeout(() => socket.destroy(), PATIENCE_MS);
    socket.setNoDelay(true);
    for (let at = 1; at < edges.length; at++) socket.write(whole.subarray(edges[at - 1], edges[at]));
    if (isAborted) socket.write("", () => socket.destroy());
    socket.on("data", (data) => {
      answer += data.toString("latin1");
      if (isWhole(answer)) socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(patience);
      resolve(answer);
    });
  });
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  const length = /^content-length: *(\d+)/im.exec(answer.slice(0, end))?.[1];
  return end >= 0 && length !== undefined && answer.length >= end + 4 + Number(length);
}

/** The proxy's own answers have an error type; none of them is an internal error. */
function expectAnswer(answer: string, { bytes }: Sent): void {
  if (answer === "") return;
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
  expect(status, answer.slice(0, 200)).toBeGreaterThanOrEqual(100);
  expect(answer).not.toContain("PROXY_ERROR");
  // The server itself refuses what is not HTTP, without an answer.
  if (status < 500 || /^HTTP\/1\.1 505 [^\r]*\r\nConnection: close\r\n\r\n$/.test(answer)) return;
  // The status of an answer to HEAD says everything.
  if ([502, 504].includes(status) && answer.endsWith("\r\n\r\n") && bytes.includes("HEAD ")) return;
  expect(answer).toMatch(/"type":"PROXY_(TIMEOUT|UPSTREAM_UNREACHABLE)".*"sender":"proxy"/);
}

function expectUpstream({ requests }: RawUpstream): void {
  for (const { line, headers } of requests) {
    const target = line.split(" ").slice(1, -1).join(" ");
    expect(new URL(target, upstream.url).pathname, line).toMatch(/^\/v0(\/|$)/);
    expect(target.startsWith("/v0"), line).toBe(true);
    expect(headers.host).toBe(new URL(upstream.url).host);
    expect(Object.keys(headers)).not.toContain(INJECTED);
  }
}

fuzz(
  "after any request, the proxy stays up, and has contacted only the configured upstream",
  150,
  fc.asyncProperty(fc.array(exchange, { minLength: 1, maxLength: 4 }), async (all) => {
    upstream.requests.length = 0;
    const answers = await Promise.all(all.map(send));
    for (const [index, answer] of answers.entries()) expectAnswer(answer, all[index]!);
    expectUpstream(upstream);
    expect(trap.requests).toEqual([]);
    const health = await fetch(`http://127.0.0.1:${stack.proxy.port}/healthz`);
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
  }),
);

/** Possible answers of an upstream: the proxy passes them on, or reports that there was none. */
const upstreamBytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  fc
    .record({
      status: fc.oneof(
        fc.integer({ min: 100, max: 999 }),
        fc.constantFrom(200, 204, 205, 304, 429, 103, 301, 500, 503),
      ),
      headers: fc.dictionary(
        fc.constantFrom("Content-Encoding", "Retry-After", "Location", "Connection", "Transfer-Encoding"),
        fc.oneof(fc.constantFrom("gzip", "chunked", "30", "1e400", "close, x-a"), text),
      ),
      body: anyText,
      cut: fc.option(fc.nat()),
    })
    .map(({ status, headers, body, cut }) => {
      const bytes = httpAnswer(status, headers, body);
      return cut === null ? bytes : bytes.subarray(0, cut % (bytes.length + 1));
    }),
);

fuzz(
  "any answer of the upstream is passed on, or the proxy reports that there was none",
  200,
  fc.asyncProperty(upstreamBytes, fc.constantFrom("GET", "POST", "DELETE"), async (bytes, method) => {
    upstream.answer = (socket) => socket.end(bytes);
    const line = `${method} /api.airtable.com/v0/appX/T/rec1 HTTP/1.1`;
    // Each with a key of its own: a refused one is not tried again.
    const key = `Authorization: Bearer ${crypto.randomUUID()}`;
    const bytesSent = `${line}\r\nHost: proxy\r\n${key}\r\nConnection: close\r\n\r\n`;
    const answer = await send({ bytes: bytesSent, cuts: [], isAborted: false });
    if (answer === "") return;
    const own = /"type":"PROXY_(TIMEOUT|UPSTREAM_UNREACHABLE)".*"sender":"proxy"/;
    if (!own.test(answer)) expect(bytes.toString("latin1").slice(0, 12)).toBe(answer.slice(0, 12));
  }),
);

test("none of these requests was counted as a failure of the proxy", async () => {
  const health = await fetch(`http://127.0.0.1:${stack.proxy.port}/readyz`);
  expect(health.status).toBe(200);
});
