/**
 * P1: the request that the proxy checked is the one that the source gets: never another base, table, record or method
 * (S1).
 *
 * Request lines and Hosts are sent over a raw socket, since `new Request()` and `fetch` normalize a target first;
 * arrivals are seen by an upstream below HTTP libraries, and parsed in all the ways that a source may parse them.
 */
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { proxyApp } from "../../../apps/proxy/app";
import { type ProxyTarget, parseTarget } from "../../../apps/proxy/target";
import { type Listener, listen } from "../../../core/http";
import { fuzz } from "../../support/fuzz";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";
import { type RawRequest, type RawUpstream, rawUpstream, sendRaw } from "../../support/raw-upstream";

const VICTIM = "appVVVVVVVVVVVVVV";
const MINE = "appMMMMMMMMMMMMMM";
/** Bun closes no connection for an unknown method: a request that is not answered by then has no answer. ms */
const PATIENCE_MS = 200;
/** For requests that are answered, on a busy machine. */
const ANSWER_MS = 10_000;
const CASE_HEADER = "x-case";
/** The proxy's address: without a host in the path, its first upstream is used. */
const OWN_HOST = "localhost:4000";
const UPSTREAM_HOSTS = ["api.airtable.com", "content.airtable.com"];

let upstream: RawUpstream;
/** The second upstream: requests that arrive here were meant for it. */
let content: RawUpstream;
let stack: ProxyStack;
/** A proxy whose decisions are recorded under the number of their case. */
let listener: Listener;
const decisions = new Map<string, ProxyTarget>();
let cases = 0;

beforeAll(async () => {
  upstream = await rawUpstream();
  content = await rawUpstream();
  stack = await proxyStack({
    UPSTREAMS: `api.airtable.com=${upstream.url},content.airtable.com=${content.url}`,
    UPSTREAM_TIMEOUT_MS: "5000",
  });
  const { upstreams } = stack.ctx.config;
  const { app, ownHosts } = proxyApp(stack.managed as never);
  listener = listen(
    {
      fetch(request) {
        const target = parseTarget(request.method.toUpperCase(), request.url, { upstreams, ownHosts });
        if (typeof target !== "string") decisions.set(request.headers.get(CASE_HEADER) ?? "", target);
        return app.fetch(request);
      },
    },
    { port: 0, portVariable: "PROXY_PORT", host: "127.0.0.1" },
  );
  ownHosts.add(OWN_HOST);
});
afterAll(async () => {
  await listener?.stop();
  await stack?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
  await content?.[Symbol.asyncDispose]();
});
beforeEach(() => forget());

function forget(): void {
  upstream.requests.length = 0;
  content.requests.length = 0;
}

interface Sent {
  method: string;
  target: string;
  /** Absent: no such header. */
  host: string | undefined;
  version: string;
}

interface Outcome {
  answer: string;
  decided: ProxyTarget | undefined;
  arrived: RawRequest | undefined;
  /** The upstream that it arrived at. */
  at: string | undefined;
}

async function send(
  { method, target, host, version }: Sent,
  port = listener.port,
  patienceMs = ANSWER_MS,
): Promise<Outcome> {
  const id = String(++cases);
  const isRead = ["GET", "HEAD", "OPTIONS"].includes(method);
  const head = [
    `${method} ${target} HTTP/${version}`,
    ...(host === undefined ? [] : [`Host: ${host}`]),
    `${CASE_HEADER}: ${id}`,
    "Authorization: Bearer pat",
    "X-HTTP-Method-Override: DELETE",
    "Connection: close",
    ...(isRead ? [] : ["Content-Type: application/json", "Content-Length: 2"]),
  ];
  const answer = await Promise.race([
    sendRaw(port, `${head.join("\r\n")}\r\n\r\n${isRead ? "" : "{}"}`, isWhole).catch(() => ""),
    Bun.sleep(patienceMs).then(() => ""),
  ]);
  const [at, arrived] =
    [upstream, content]
      .map(({ requests }, index) => [UPSTREAM_HOSTS[index], requests.find(isOfCase(id))] as const)
      .find(([, request]) => request !== undefined) ?? [];
  return { answer, decided: decisions.get(id), arrived, at };
}

const isOfCase = (id: string) => (request: RawRequest) => request.headers[CASE_HEADER] === id;

function isWhole(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  const length = /^content-length: *(\d+)/im.exec(answer.slice(0, end))?.[1];
  return end >= 0 && length !== undefined && answer.length >= end + 4 + Number(length);
}

/** The arrival equals the checked request, and can be parsed in no other way. */
function expectAsDecided({ method, target, host }: Sent, { decided, arrived, at }: Outcome): void {
  if (arrived === undefined) return;
  expect(decided, arrived.line).toBeDefined();
  expect(host, arrived.line).toMatch(/^[\w.:[\]-]+$/);
  expect(arrived.line).toBe(`${decided!.method} ${decided!.path} HTTP/1.1`);
  expect(decided!.method).toBe(method);
  expect(Object.keys(arrived.headers)).not.toContain("x-http-method-override");
  const path = decided!.path.replace(/\?.*$/s, "");
  for (const read of [literally, asUrl, loosely]) {
    expect([read.name, baseOf(read(path))]).toEqual([read.name, decided!.baseId]);
  }
  const { call } = decided!;
  const [, table, record] = literally(path);
  expect(asUrl(path)).toEqual(literally(path));
  if (call.kind === "write") expect(call.tableRef).toBe(table);
  if (call.kind === "write" && record !== undefined) expect(call.ids).toEqual([record]);
  // A target that needs no normalizing is forwarded byte for byte, and others as the URL standard normalizes them.
  const path_ = /^https?:\/\/[^/]*(.*)$/s.exec(target)?.[1] ?? target;
  const normal = new URL(`http://x${Buffer.from(path_, "latin1").toString()}`);
  const [first = ""] = normal.pathname.split("/").filter(Boolean);
  const isNamed = UPSTREAM_HOSTS.includes(first.toLowerCase());
  const prefix = isNamed ? /^\/+[^/]*\/*/ : /^\/+/;
  expect((normal.pathname + normal.search).replace(prefix, "/")).toBe(
    decided!.path.replace(/^([^?]*)\?$/, "$1"),
  );
  // A host in the path comes first; then the Host header, which is an upstream's or the proxy's own.
  const hostname = host!.toLowerCase().replace(/:\d+$/, "");
  if (isNamed) expect(at).toBe(first.toLowerCase());
  else if (UPSTREAM_HOSTS.includes(hostname)) expect(at).toBe(hostname);
  else expect([host, at]).toEqual([OWN_HOST, UPSTREAM_HOSTS[0]]);
}

/** The ways to parse a path: by segments; with a URL parser; with everything decoded that can be. */
const literally = (path: string) => path.split("/").filter(Boolean).slice(1).map(decodeOnce);
const asUrl = (path: string) => literally(new URL(`http://x${path}`).pathname);
function loosely(path: string): string[] {
  let text = path;
  for (let before = ""; before !== text; ) {
    before = text;
    text = text.replace(/%([0-7][0-9a-f])/gi, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
  const found: string[] = [];
  for (const part of text.replace(/[\t\r\n\0]/g, "").split(/[/\\]/)) {
    const name = part.replace(/;.*/s, "");
    if (name === "..") found.pop();
    else if (part !== "" && name !== ".") found.push(part);
  }
  return found.slice(1);
}

function baseOf([first, second, third]: string[]): string | undefined {
  const id = first === "meta" && second === "bases" ? third : first === "bases" ? second : first;
  return id !== undefined && /^app[0-9A-Za-z]+$/.test(id) ? id : undefined;
}

function decodeOnce(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

const odd = fc.constantFrom(
  ...[
    "..",
    ".",
    "%2e%2e",
    ".%2E",
    "%2e",
    "..%2f",
    "%2f..",
    "..%5c",
    "\\",
    "..\\",
    "\\..\\",
    "%5c..%5c",
    "%252e%252e",
  ],
  ...[
    "%252f..",
    "%25252e.",
    "%%32e%%32e",
    "..;",
    ".\t.",
    "..%00",
    "%zz%2f..%2f..",
    "%c0%ae",
    "\xe9",
    "\xc3\xa9",
    "",
  ],
  ...[
    "My%20Tasks%2F1",
    "a+b",
    "50%25",
    "50%",
    "a%252Fb",
    "..a",
    "...",
    "#",
    "?",
    "?a=/../b",
    "%3f",
    "%23",
    "{a|b}^`",
  ],
);
const usual = fc.constantFrom(
  VICTIM,
  MINE,
  "%61ppVVVVVVVVVVVVVV",
  "Tasks",
  "tbl1",
  "rec1",
  "meta",
  "bases",
  "tables",
);
const more = fc.constantFrom(
  "v0",
  "webhooks",
  "listRecords",
  "uploadAttachment",
  "sync",
  "comments",
  "%2F",
  "a/b",
);
const segment = fc.oneof(
  { weight: 4, arbitrary: usual },
  { weight: 2, arbitrary: more },
  { weight: 5, arbitrary: odd },
);
const joint = fc.constantFrom("/", "/", "/", "/", "/", "//", "\\", "%2f", "%5C", "/./", "");
const rest = fc
  .array(fc.tuple(segment, joint), { minLength: 1, maxLength: 7 })
  .map((parts) => parts.map(([name, join]) => name + join).join(""));
const start = fc.constantFrom(
  ...[`/api.airtable.com/v0/${VICTIM}/`, `/api.airtable.com/v0/${VICTIM}/Tasks/`, "/api.airtable.com/v0/"],
  ...[
    "/API.airtable.com//v0/",
    "//api.airtable.com/v0/",
    "/x/../api.airtable.com/v0/",
    "/\\api.airtable.com/v0/",
  ],
  ...[
    "http://x/api.airtable.com/v0/",
    `http://[/api.airtable.com/v0/${VICTIM}/`,
    "https://u:p@x:1/api.airtable.com/v0/",
  ],
);
const hostlessStart = fc.constantFrom(
  ...["/v0/", `/v0/${VICTIM}/Tasks/`, "//v0/", "/v0//"],
  ...["http://api.airtable.com/v0/", "http://content.airtable.com//v0/", `http://evil.com/v0/${VICTIM}/`],
);
const upstreamHosts = ["api.airtable.com", "content.airtable.com", "Content.airtable.com:443", OWN_HOST];
const nearlyUpstreamHosts = [
  "api.airtable.com.",
  "evil.com",
  "localhost:4001",
  "content.airtable.com.evil.com",
];
const hosts = [
  ...[
    "127.0.0.1:24000",
    "localhost",
    "1.2.3.4.5",
    "x.999",
    "256.256.256.256",
    "xn--a",
    "x:999999",
    "x:0x",
    "",
  ],
  ...["a b", "a|b", "a%00b", "[::1", "a<b", "x/y", "u@x", "[::1]:80", "%zz", "x\\y", "::1", "\xe9"],
];
const sent: fc.Arbitrary<Sent> = fc.record({
  method: fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS") },
    { weight: 1, arbitrary: fc.constantFrom("get", "Patch", "TRACE", "CONNECT", "QUERY", "G\xc9T") },
  ),
  target: fc.tuple(fc.oneof(start, hostlessStart), rest).map((parts) => parts.join("")),
  host: fc.oneof(
    { weight: 4, arbitrary: fc.constant<string | undefined>("localhost") },
    { weight: 3, arbitrary: fc.constantFrom<(string | undefined)[]>(...hosts, undefined) },
    { weight: 6, arbitrary: fc.constantFrom<(string | undefined)[]>(...upstreamHosts) },
    { weight: 1, arbitrary: fc.constantFrom<(string | undefined)[]>(...nearlyUpstreamHosts) },
  ),
  version: fc.oneof(
    { weight: 5, arbitrary: fc.constant("1.1") },
    { weight: 1, arbitrary: fc.constantFrom("1.0", "2.0") },
  ),
});

const arrivals: Record<string, number> = {
  "named in the path": 0,
  ...Object.fromEntries(UPSTREAM_HOSTS.map((host) => [host, 0])),
};
const isHostInPath = (target: string) =>
  /[/\\](?:api|content)\.airtable\.com[/\\]+v0/i.test(target.replace(/^https?:\/\/[^/]*/, ""));
fuzz(
  "P1: any request is refused, or arrives as the request that was checked",
  150,
  fc.asyncProperty(fc.array(sent, { minLength: 8, maxLength: 8 }), async (all) => {
    const outcomes = await Promise.all(all.map((one) => send(one, listener.port, PATIENCE_MS)));
    for (const [index, outcome] of outcomes.entries()) expectAsDecided(all[index]!, outcome);
    for (const [index, { at }] of outcomes.entries()) {
      const { target } = all[index]!;
      if (at !== undefined) arrivals[isHostInPath(target) ? "named in the path" : at]! += 1;
    }
    forget();
  }),
);

test("a large part of them arrived, in each of the forms", () => {
  expect(arrivals["named in the path"]).toBeGreaterThan(50);
  for (const host of UPSTREAM_HOSTS) expect([host, arrivals[host]! > 2]).toEqual([host, true]);
});

test.for([
  ["GET", `/v0/${MINE}/Tasks`, OWN_HOST, "api.airtable.com"],
  ["PATCH", `/v0/${MINE}/Tasks/rec1`, "api.airtable.com", "api.airtable.com"],
  ["POST", `/v0/${MINE}/rec1/F/uploadAttachment`, "content.airtable.com", "content.airtable.com"],
  ["GET", `http://api.airtable.com/v0/${MINE}/Tasks`, "api.airtable.com", "api.airtable.com"],
  [
    "POST",
    `http://content.airtable.com/v0/${MINE}/rec1/F/uploadAttachment`,
    "content.airtable.com",
    "content.airtable.com",
  ],
  ["GET", `http://evil.com/v0/${MINE}/Tasks`, "evil.com", undefined],
  ["GET", `/v0/${MINE}/Tasks`, "localhost", undefined],
  ["CONNECT", "api.airtable.com:443", "api.airtable.com:443", undefined],
] as const)(
  "without a host in the path: %s %s with Host %s reaches %s",
  async ([method, target, host, expected]) => {
    const one = { method, target, host, version: "1.1" };
    const outcome = await send(one);
    expectAsDecided(one, outcome);
    expect(outcome.at).toBe(expected);
    if (expected) expect(outcome.decided?.baseId).toBe(MINE);
  },
);

describe("attacks from the security audit", () => {
  // From here on its requests are counted, and sent in the same way.
  beforeAll(() => stack.connectUnchecked(VICTIM));
  const good = ["127.0.0.1:24000", "localhost"];
  const attacks: [method: string, path: string][] = [
    ["GET", `${VICTIM}/../${MINE}/Tasks`],
    ["PATCH", `${VICTIM}/Tasks/..\\..\\${MINE}\\Copy\\rec1`],
    ["DELETE", `${VICTIM}/Tasks/..\\..\\${MINE}\\Copy\\rec2`],
  ];
  const versions = [
    ...hosts.map((host) => ["1.1", host] as const),
    ["1.0", undefined],
    ["1.0", "localhost"],
  ] as const;
  test.for(versions)("HTTP/%s with Host %j leads to no other base", async ([version, host]) => {
    for (const [method, path] of attacks) {
      const one = { method, target: `/api.airtable.com/v0/${path}`, host, version };
      const direct = await send(one);
      expectAsDecided(one, direct);
      // The proxy as started in production: the listener itself refuses.
      const { answer, arrived } = await send(one, stack.proxy.port);
      if (host !== undefined && [...good, "[::1]:80"].includes(host)) {
        expect(arrived?.line).toMatch(new RegExp(`^${method} /v0/${MINE}/`));
        expect(direct.decided?.baseId).toBe(MINE);
      } else {
        expect(arrived).toBeUndefined();
        expect(answer).toMatch(/^HTTP\/1\.1 400 .*"type":"PROXY_REQUEST_MALFORMED".*"sender":"proxy"/s);
        expect(answer).toMatch(/x-content-type-options: nosniff/i);
      }
    }
  });
});

test.for([...["..%2fX", "%2e%2e%2fX", "%252e%252e", "a%5Cb", "a%255cb", "..;"]])(
  "a name that leads to another path is refused, and the error suggests the table's id: %s",
  async (name) => {
    for (const method of ["GET", "PATCH"]) {
      const target = `/api.airtable.com/v0/${VICTIM}/${name}`;
      const { answer, arrived } = await send({ method, target, host: "x", version: "1.1" }, stack.proxy.port);
      expect(arrived).toBeUndefined();
      expect(answer).toMatch(/^HTTP\/1\.1 400 .*"PROXY_PATH_NOT_ALLOWED".*table's id.*"sender":"proxy"/s);
    }
  },
);

test.for([
  `${VICTIM}a%252Fb/tbl1`,
  `${VICTIM};x/tbl1`,
  `${VICTIM}%00/tbl1`,
  `meta/bases/${VICTIM}%253Bx/tables`,
])("an id that lenient parsers would read as another one is refused: %s", async (path) => {
  for (const method of ["GET", "PATCH"]) {
    const target = `/api.airtable.com/v0/${path}`;
    const { answer, arrived } = await send({ method, target, host: "x", version: "1.1" }, stack.proxy.port);
    expect(arrived).toBeUndefined();
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*"PROXY_PATH_NOT_ALLOWED"/s);
  }
});

test.for([
  "My%20Tasks%2F1",
  "a+b",
  "50%25",
  "100%25",
  "%F0%9F%92%A1",
  "a%252Fb",
  "v1.0..2",
  "...",
  "Q&A;x",
  "T%C3%A2ches",
])("a table's name is forwarded unchanged: %s", async (name) => {
  const target = `/api.airtable.com/v0/${MINE}/${name}?a=%2e%2e/../%5C`;
  for (const method of ["GET", "POST"]) {
    const { arrived } = await send({ method, target, host: "x", version: "1.1" }, stack.proxy.port);
    expect(arrived?.line).toBe(`${method} ${target.slice("/api.airtable.com".length)} HTTP/1.1`);
  }
});
