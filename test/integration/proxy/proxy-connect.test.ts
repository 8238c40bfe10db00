/** P6: CONNECT leads to the configured upstreams through the proxy, and nowhere else. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { localAuthority } from "../../../apps/proxy/connect/local-authority";
import { openTunnels } from "../../../apps/proxy/connect/tunnels";
import { type RunningProxy, startProxy } from "../../../apps/proxy/start";
import { readConfig } from "../../../core/config";
import { createAuthority } from "../../../core/http";
import { closeContext, createContext } from "../../../core/process";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";
import { sendRaw } from "../../support/raw-upstream";
import { ofProgram, runs } from "../../support/tools/table";

let folder: string;
let stack: ProxyStack;
let base: Replicated;
let baseId: string;
/** A foreign listener that must not get any request. */
let strangers: net.Server;
let strangerPort: number;
let visits = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "connect-"));
  stack = await proxyStack({ CONNECT_PORT: "0", DATA_DIR: folder, CLIENT_IP_HEADER: "x-client" });
  baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [
      {
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Files", type: "multipleAttachments" },
        ],
      },
    ],
  });
  base = await stack.connect(baseId);
  await base.sync();
  strangers = net.createServer((socket) => {
    visits++;
    socket.destroy();
  });
  strangerPort = await new Promise((resolve) =>
    strangers.listen(0, "127.0.0.1", () => resolve((strangers.address() as net.AddressInfo).port)),
  );
}, 60_000);
afterAll(async () => {
  strangers?.close();
  await stack?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Runs a program whose only configuration is an HTTPS proxy and an authority, as in the guide. */
async function run(words: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn(words, {
    env: {
      ...process.env,
      HTTPS_PROXY: `http://127.0.0.1:${stack.proxy.connectPort}`,
      https_proxy: `http://127.0.0.1:${stack.proxy.connectPort}`,
      SSL_CERT_FILE: join(folder, "connect-ca.pem"),
      CURL_CA_BUNDLE: join(folder, "connect-ca.pem"),
      REQUESTS_CA_BUNDLE: join(folder, "connect-ca.pem"),
      KEY: stack.sandbox.key,
      ...env,
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { output, errors, exitCode: await child.exited };
}

/** Acts as another proxy process. */
async function start(connectPort: number | undefined, port = 0): Promise<RunningProxy> {
  const ctx = createContext({ ...stack.ctx.config, connectPort }, "proxy");
  onTestFinished(() => closeContext(ctx));
  return startProxy(ctx, { port });
}

const names = async () => (await base.rows("tasks")).map((row) => row.name);

test(
  "curl writes with its usual proxy variable, and SQL shows the write",
  runs(ofProgram("curl, by CONNECT", "curl", "--version")),
  async () => {
    const { output, errors } = await run([
      ...[
        "curl",
        "-sS",
        `https://api.airtable.com/v0/${baseId}/Tasks`,
        "-H",
        "Content-Type: application/json",
      ],
      ...["-H", `Authorization: Bearer ${stack.sandbox.key}`, "-d", '{"fields":{"Name":"by curl"}}'],
    ]);
    expect(errors).toBe("");
    expect(JSON.parse(output)).toMatchObject({ fields: { Name: "by curl" } });
    expect(await names()).toContain("by curl");
  },
);

test.for([
  [
    "urllib",
    "json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))",
  ],
  ["requests", "requests.post(url, json=body, headers=headers).json()"],
])(
  "a Python program on %s that pins both hosts writes and uploads, and SQL shows both",
  runs(
    ofProgram(
      "Python's requests, by CONNECT",
      "python3",
      "-c",
      "import requests; print(requests.__version__)",
    ),
    ofProgram("Python's urllib, by CONNECT", "python3", "--version"),
  ),
  async ([library, call], { skip }) => {
    const isThere = Bun.spawnSync(["python3", "-c", `import ${library}`]).exitCode === 0;
    skip(!isThere, `Python's ${library} is not installed on this machine`);
    const program = `
import base64, json, os, urllib.request
import ${library}
def call(url, body):
    headers = {"Authorization": "Bearer " + os.environ["KEY"], "Content-Type": "application/json"}
    return ${call}
record = call("https://api.airtable.com/v0/${baseId}/Tasks", {"fields": {"Name": "by ${library}"}})
file = {"contentType": "text/plain", "filename": "a.txt", "file": base64.b64encode(b"hello").decode()}
call("https://content.airtable.com/v0/${baseId}/" + record["id"] + "/Files/uploadAttachment", file)`;
    const { errors, exitCode } = await run(["python3", "-c", program]);
    expect([exitCode, errors]).toEqual([0, ""]);
    const row = (await base.rows("tasks")).find(({ name }) => name === `by ${library}`);
    expect(JSON.stringify(row)).toContain("a.txt");
  },
);

test("a client that does not trust the authority sends no request", async () => {
  const before = stack.sandbox.control.log(baseId).length;
  const another = join(folder, "another-ca.pem");
  writeFileSync(another, createAuthority("Another").certificate);
  const { exitCode } = await run(["curl", "-s", `https://api.airtable.com/v0/${baseId}/Tasks`], {
    CURL_CA_BUNDLE: another,
  });
  expect(exitCode).not.toBe(0);
  expect(stack.sandbox.control.log(baseId)).toHaveLength(before);
});

test("requests within a tunnel are treated like all others", async () => {
  const ask = (...more: string[]) => run(["curl", "-s", ...more, "-H", "Authorization: Bearer x"]);
  const elsewhere = await ask("-H", "Host: elsewhere.example", "https://api.airtable.com/v0/appX/T");
  expect(JSON.parse(elsewhere.output)).toMatchObject({ error: { type: "PROXY_HOST_NOT_ALLOWED" } });
  const path = await ask("--path-as-is", "https://api.airtable.com/v0/appX/..%2f..%2fadmin");
  expect(JSON.parse(path.output)).toMatchObject({ error: { type: "PROXY_PATH_NOT_ALLOWED" } });
});

describe("anything but a CONNECT to a configured host is refused", () => {
  const refused = (head: string) => sendRaw(stack.proxy.connectPort!, head);

  test.for([
    ["CONNECT elsewhere.example:443 HTTP/1.1", 403],
    ["CONNECT api.airtable.com.elsewhere.example:443 HTTP/1.1", 403],
    ["CONNECT api.airtable.com:80 HTTP/1.1", 403],
    ["CONNECT api.airtable.com:0443 HTTP/1.1", 403],
    ["CONNECT api.airtable.com HTTP/1.1", 403],
    ["CONNECT 127.0.0.1:PORT HTTP/1.1", 403],
    ["CONNECT [::1]:443 HTTP/1.1", 403],
    ["CONNECT x@api.airtable.com:443 HTTP/1.1", 403],
    ["CONNECT https://api.airtable.com:443/ HTTP/1.1", 403],
    ["CONNECT api.airtable.com:443 127.0.0.1:PORT HTTP/1.1", 405],
    ["CONNECT  api.airtable.com:443 HTTP/1.1", 405],
    ["connect api.airtable.com:443 HTTP/1.1", 405],
    ["CONNECT api.airtable.com:443 HTTP/2.0", 405],
    ["GET http://127.0.0.1:PORT/ HTTP/1.1", 405],
    ["GET / HTTP/1.1", 405],
    ["\x16\x03\x01\x02", 405],
  ] as const)("%j: %i", async ([line, status]) => {
    const before = stack.sandbox.control.log(baseId).length;
    const sent = line.replace("PORT", String(strangerPort));
    const answer = await refused(`${sent}\r\nHost: api.airtable.com:443\r\n\r\n`);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*"sender":"proxy"`, "s"));
    expect(visits).toBe(0);
    expect(stack.sandbox.control.log(baseId)).toHaveLength(before);
  });

  test("  a head that does not end", async () => {
    expect(await refused(`CONNECT api.airtable.com:443 HTTP/1.1\r\nX: ${"x".repeat(9000)}`)).toMatch(
      /^HTTP\/1\.1 431 /,
    );
  });

  test("  its connection is closed, whatever the client continues to send", async () => {
    const socket = net.connect({ port: stack.proxy.connectPort!, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    const state = { isClosed: false };
    socket.on("close", () => {
      state.isClosed = true;
    });
    socket.on("error", () => {});
    socket.resume();
    socket.write("GET / HTTP/1.1\r\n\r\n");
    await until(
      () => {
        socket.write("more");
        return state.isClosed;
      },
      { what: "the refused connection is closed" },
    );
  });

  test("a slow one is cut off, and tunnels are closed when the proxy stops", async () => {
    const held = net.createServer((socket) => void socket.on("error", () => {}));
    const leadsTo = await new Promise<number>((resolve) =>
      held.listen(0, "127.0.0.1", () => resolve((held.address() as net.AddressInfo).port)),
    );
    onTestFinished(() => void held.close());
    const clients = new Map<number, string>();
    const hosts = ["a.example"];
    const tunnels = await openTunnels({
      port: 0,
      host: "127.0.0.1",
      hosts,
      leadsTo,
      clients,
      headTimeoutMs: 200,
    });
    expect(await sendRaw(tunnels.port, "CONNECT a.example:443 HT").catch(() => "")).toBe("");
    const opened = Promise.withResolvers<void>();
    const tunnel = sendRaw(tunnels.port, "CONNECT A.example:443 HTTP/1.0\r\n\r\n", (answer) => {
      if (answer.includes("\r\n\r\n")) opened.resolve();
      return false;
    });
    await opened.promise;
    expect([...clients.values()]).toEqual(["127.0.0.1"]);
    await tunnels.stop();
    await until(() => clients.size === 0, { what: "the closed tunnel is forgotten" });
    expect(await tunnel).toMatch(/^HTTP\/1\.1 200 /);
  });
});

test("clients of one address have half of the tunnels; when all are open, the newest of the largest address closes", async () => {
  const clients = new Map<number, string>();
  const options = { port: 0, host: "127.0.0.1", hosts: ["api.airtable.com"], leadsTo: strangerPort, clients };
  const tunnels = await openTunnels({ ...options, headTimeoutMs: 120_000 });
  const open = new Map<string, Set<net.Socket>>();
  const connect = (localAddress: string) =>
    new Promise<net.Socket>((resolve) => {
      const socket = net.connect({ port: tunnels.port, host: "127.0.0.1", localAddress }, () =>
        resolve(socket),
      );
      const all = open.get(localAddress) ?? new Set();
      open.set(localAddress, all.add(socket));
      socket.resume().on("error", () => {});
      socket.on("close", () => all.delete(socket));
    });
  const counts = () => Object.fromEntries([...open].map(([address, all]) => [address, all.size]));
  try {
    for (let at = 0; at < 510; at++) await connect("127.0.0.2");
    await until(() => open.get("127.0.0.2")!.size === 500, { what: "ten are refused" });
    for (let at = 0; at < 500; at++) await connect("127.0.1.3");
    await connect("127.0.3.4");
    await until(() => counts()["127.0.0.2"] === 499 || counts()["127.0.1.3"] === 499, {
      what: "one gives way",
    });
    expect(Object.values(counts()).sort()).toEqual([1, 499, 500]);
  } finally {
    await tunnels.stop();
  }
}, 60_000);

test("a client is identified by its own address, not by a header", async () => {
  const tunneled = (path: string, ...more: string[]) =>
    run([
      ...[
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "--interface",
        "127.0.0.2",
        "-H",
        "x-client: 192.0.2.1",
      ],
      ...[...more, `https://api.airtable.com${path}`],
    ]);
  // 600 preflights per minute from one network.
  const direct = Array.from({ length: 601 }, () =>
    fetch(`${stack.endpoint}/v0/${baseId}/Tasks`, {
      method: "OPTIONS",
      headers: { "x-client": "192.0.2.1" },
    }),
  );
  expect((await Promise.all(direct)).filter(({ status }) => status === 429)).toHaveLength(1);
  expect((await tunneled(`/v0/${baseId}/Tasks`, "-X", "OPTIONS")).output).toBe("200");
  // The client asked for another host than this machine.
  expect((await tunneled("/metrics")).output).toBe("404");
});

test("it is disabled by default, and listens on the loopback address unless configured otherwise", async () => {
  const config = readConfig({});
  expect([config.connectPort, config.connectHost]).toEqual([undefined, "127.0.0.1"]);
  const off = await start(undefined);
  expect(off.connectPort).toBeUndefined();
  await off.stop();
});

test("a port in use is reported with its variable, and the proxy does not stay half started", async () => {
  const port = await freePort();
  await expect(start(strangerPort, port)).rejects.toMatchObject({
    code: "port_taken",
    message: expect.stringContaining("CONNECT_PORT"),
  });
  await expect(fetch(`http://localhost:${port}/healthz`)).rejects.toThrow();
});

test("the authority is kept for the next start, created again for other hosts, and its key is readable by its owner only", () => {
  const data = join(folder, "another");
  const first = localAuthority(data, ["a.example", "b.example"]);
  expect(first.isNew).toBe(true);
  expect(statSync(join(data, "connect-ca-key.pem")).mode & 0o777).toBe(0o600);
  expect(readFileSync(first.path, "utf8")).toBe(first.certificate);
  expect(localAuthority(data, ["a.example", "b.example"])).toMatchObject({
    isNew: false,
    certificate: first.certificate,
  });
  expect(localAuthority(data, ["a.example"])).toMatchObject({ isNew: true });
});
