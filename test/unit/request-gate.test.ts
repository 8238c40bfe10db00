/** The gate before every handler, over raw sockets: `new Request()` would normalize a target. */
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { apiLimit } from "../../apps/console/api-limit";
import { isForPerson } from "../../apps/console/page-error";
import { BasetideError } from "../../core/errors";
import { listen } from "../../core/http";
import { answerError } from "../../core/http/service";
import { createLogger } from "../../core/log";
import { fuzz } from "../support/fuzz";
import { sendRaw } from "../support/raw-upstream";

/** The requests that the app behind the gate received. */
const seen: string[] = [];
const refusals: unknown[] = [];
const listener = listen(
  {
    fetch(request) {
      seen.push(request.url);
      return new Response("in");
    },
  },
  {
    port: 0,
    portVariable: "PORT",
    host: "127.0.0.1",
    publicUrl: "https://basetide.example",
    log: { debug: (...line: unknown[]) => refusals.push(line) } as never,
  },
);
afterAll(() => listener.stop());
beforeEach(() => {
  seen.length = 0;
  refusals.length = 0;
});

const isWhole = (answer: string) => /content-length: (\d+)\r\n/i.test(answer) && answer.includes("\r\n\r\n");
function ask(target: string, headers: string[], version = "1.1"): Promise<string> {
  const lines = [`GET ${target} HTTP/${version}`, ...headers, "Connection: close"];
  return sendRaw(listener.port, `${lines.join("\r\n")}\r\n\r\n`, isWhole);
}

const PATH = "/a/../b";

describe("an invalid Host is refused, with a code and the headers of every answer", () => {
  test.for([
    ...[
      "1.2.3.4.5",
      "x.999",
      "256.256.256.256",
      "x:999999",
      "x:0x",
      "",
      "a b",
      "a|b",
      "a%00b",
      "[::1",
      "a<b",
    ],
    ...[
      "x/y",
      "u@x",
      "u:p@x",
      "x#y",
      "x?y",
      "x\\y",
      "\xe9",
      "::1",
      "x:80:80",
      "4294967296",
      "%zz",
      "http://x",
    ],
    ...["xn--a", "a%41b", "x:", "[::1%25lo]", "x, y"],
  ])("%j", async (host) => {
    const answer = await ask(PATH, [`Host: ${host}`]);
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*"code":"malformed_request"/s);
    expect(answer).toMatch(/x-content-type-options: nosniff/i);
    expect(answer).toMatch(/cache-control: no-store/i);
    expect(answer).toMatch(/strict-transport-security: max-age=/i);
    expect(seen).toEqual([]);
    expect(refusals).toEqual([[expect.objectContaining({ method: "GET" }), "request refused"]]);
  });

  test("none at all, and two of them", async () => {
    expect(await ask(PATH, [], "1.0")).toContain('"code":"malformed_request"');
    expect(await ask(PATH, ["Host: x", "Host: y"])).toContain('"code":"malformed_request"');
    // Bun's own.
    expect(await ask(PATH, [])).toMatch(/^HTTP\/1\.1 400 /);
    expect(seen).toEqual([]);
  });
});

test.for(["localhost", "LOCALHOST:3000", "127.0.0.1:24000", "[::1]:80", "my_service", "example.com."])(
  "a valid Host is accepted: %s",
  async (host) => {
    expect(await ask(PATH, [`Host: ${host}`])).toMatch(/^HTTP\/1\.1 200 /);
    expect(URL.parse(seen[0]!)?.pathname).toBe("/b");
  },
);

test("an error of a request with an invalid URL is reported like any other", () => {
  const request = { url: "/a/../b", method: "GET", headers: new Headers() } as Request;
  const log = createLogger("silent", "test");
  expect(answerError(log, request, new BasetideError("not_found"), "UNKNOWN").status).toBe(404);
  expect(apiLimit({ apiRequestsPerMinute: 1, clientIpHeader: undefined })(request)).toBeUndefined();
  expect(isForPerson(request)).toBe(false);
});

test("a fragment is refused: it is for browsers only", async () => {
  expect(await ask("/a#b", ["Host: x"])).toMatch(/^HTTP\/1\.1 400 .*%23/s);
});

const piece = fc.oneof(
  fc.constantFrom(
    "..",
    ".",
    "%2e%2E",
    "\\",
    "..\\",
    "%5c",
    "",
    "a",
    "é",
    "\xff",
    "|^`{}\"<>'",
    "?",
    "#",
    "%",
    "@",
    ":",
  ),
  fc.string({ unit: "binary-ascii", maxLength: 4 }),
);
const target = fc
  .tuple(
    fc.constantFrom("/", "//", "http://h/", "https://h:1/", "http://[/", "*", "h:1", "/\\"),
    fc.array(piece),
  )
  .map(([start, pieces]) => start + pieces.join("/").replace(/[\r\n]/g, ""));
const host = fc.oneof(
  fc.constantFrom("x", "127.0.0.1:1", "[::1]", "1.2.3.4.5", "x.999", "a b", "u@x", ""),
  fc.string({ unit: "binary-ascii", maxLength: 6 }).map((text) => text.replace(/[\r\n]/g, "")),
);
fuzz(
  "with any request, no handler sees a URL that another parser would change",
  300,
  fc.asyncProperty(target, host, fc.constantFrom("1.1", "1.0"), async (path, name, version) => {
    seen.length = 0;
    await ask(path, [`Host: ${name}`], version).catch(() => "");
    for (const url of seen) {
      const parsed = new URL(url);
      expect(parsed.href).toBe(url);
      expect(parsed.pathname.split("/").filter((part) => /^(\.|%2e){1,2}$/i.test(part))).toEqual([]);
      expect(url).not.toContain("#");
    }
  }),
);
