/** Common to every answer on the console's port: its headers, and 400 for an invalid Host. */
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../../apps/console/start";
import { startProxy } from "../../../apps/proxy/start";
import { createAccount, createToken } from "../../../core/control/accounts";
import { createLogger } from "../../../core/log";
import { type TestControl, testControl } from "../../support/control-support";
import { sendRaw } from "../../support/raw-upstream";

let control: TestControl;
let running: RunningConsole;
let token: string;
const lines: unknown[] = [];
beforeAll(async () => {
  control = await testControl();
  const log = Object.assign(createLogger("silent", "test"), {
    debug: (...line: unknown[]) => void lines.push(line),
  });
  const config = { ...control.ctx.config, consoleUrl: "https://console.example" };
  running = await startConsole({ ...control.ctx, config, log }, { port: 0 });
  const account = await createAccount(control.ctx.db, { email: "h@example.com", password: "long enough" });
  token = await createToken(control.ctx.db, account.id, "test");
});
afterAll(async () => {
  await running?.stop();
  await control?.[Symbol.asyncDispose]();
});

describe("S21: no cache stores an answer, no browser sniffs its type, and the next request uses TLS", () => {
  test.for([
    ["/api/v1/bases", 200],
    ["/api/v1/bases/base_x/credentials", 404],
    ["/api/v1/nope", 404],
    ["/openapi", 200],
    ["/readyz", 200],
    ["/sign-in", 200],
    ["/nope", 404],
    ["/a/base_1/tbl1/rec1/fld1/att1?sig=x", 404],
  ] as const)("%s", async ([path, status]) => {
    const headers = {
      authorization: `Bearer ${token}`,
      accept: path.startsWith("/api/") ? "*/*" : "text/html",
    };
    const answer = await fetch(`http://127.0.0.1:${running.port}${path}`, { headers });
    expect(answer.status).toBe(status);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "strict-transport-security": expect.stringMatching(/^max-age=\d{8}$/),
      "content-security-policy": expect.stringContaining("frame-ancestors 'none'"),
    });
  });

  test("a call without a token", async () => {
    const { status, headers } = await fetch(`http://127.0.0.1:${running.port}/api/v1/bases`);
    expect([status, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
      401,
      "no-store",
      "nosniff",
    ]);
  });

  test("page assets are still cached", async () => {
    const page = await (await fetch(`http://127.0.0.1:${running.port}/sign-in`)).text();
    const file = /\/assets\/[^"]+/.exec(page)![0];
    const { headers } = await fetch(`http://127.0.0.1:${running.port}${file}`);
    expect(headers.get("cache-control")).toContain("immutable");
  });
});

test("without TLS, no browser is told to use it", async () => {
  const plain = await startConsole({ ...control.ctx, metrics: new Registry() }, { port: 0 });
  try {
    const { headers } = await fetch(`http://127.0.0.1:${plain.port}/sign-in`);
    expect(headers.get("strict-transport-security")).toBeNull();
  } finally {
    await plain.stop();
  }
});

test.for(["1.2.3.4.5", "256.256.256.256", "", "[", "a b"])(
  "S18: Host %j is answered 400, with headers and a line in the log",
  async (host) => {
    lines.length = 0;
    for (const path of ["/sign-in", "/api/v1/bases", "/healthz"]) {
      const answer = await sendRaw(
        running.port,
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 400 .*"code":"malformed_request"/s);
      for (const name of ["x-content-type-options", "content-security-policy", "strict-transport-security"]) {
        expect(answer.toLowerCase()).toContain(`\r\n${name}: `);
      }
    }
    expect(lines).toHaveLength(3);
    expect(lines[0]).toEqual([{ method: "GET", detail: expect.stringContaining("Host") }, "request refused"]);
  },
);

test("the proxy's own answers have them, and those of the source are unchanged", async () => {
  await using source = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json({ ok: true }),
  });
  const config = {
    ...control.ctx.config,
    proxyUrl: "https://proxy.example",
    upstreams: { "api.airtable.com": `http://127.0.0.1:${source.port}` },
  };
  const proxy = await startProxy({ ...control.ctx, config }, { port: 0 });
  try {
    const at = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${proxy.port}${path}`, init);
    for (const path of ["/elsewhere/v0/x", "/api.airtable.com/v1/x", "/readyz", "/healthz"]) {
      expect(Object.fromEntries((await at(path)).headers), path).toMatchObject({
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "strict-transport-security": expect.stringMatching(/^max-age=/),
      });
    }
    for (const method of ["GET", "PATCH"]) {
      const { status, headers } = await at("/api.airtable.com/v0/appX/T", {
        method,
        headers: { authorization: "Bearer patSome.key" },
      });
      expect([status, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
        200,
        null,
        null,
      ]);
      expect(headers.get("strict-transport-security")).toBeNull();
    }
  } finally {
    await proxy.stop();
  }
});
