/** The preload for Node programs: a call of the API arrives at the proxy unchanged, whichever way it is sent. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { node } from "../../support/node";
import { httpAnswer, type RawUpstream, rawUpstream } from "../../support/raw-upstream";
import { repoRoot } from "../../support/source-files";
import { pinned, runs } from "../../support/tools/table";

/** Takes the place of the proxy, and returns what it receives. */
let proxy: RawUpstream;
let elsewhere: RawUpstream;
let folder: string;

beforeAll(async () => {
  proxy = await rawUpstream();
  elsewhere = await rawUpstream();
  // Inside the repository, so that packages are found.
  folder = mkdtempSync(join(repoRoot, ".redirect-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await proxy?.[Symbol.asyncDispose]();
  await elsewhere?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  proxy.requests.length = 0;
  elsewhere.requests.length = 0;
  proxy.answer = (socket) =>
    socket.write(httpAnswer(200, { "Content-Type": "application/json" }, '{"id":"rec1","fields":{}}'));
});

async function run(source: string, { extension = "mjs", env = {} as Record<string, string> } = {}) {
  const file = join(folder, `program.${extension}`);
  writeFileSync(file, source);
  const child = Bun.spawn([node!, file], {
    env: {
      ...process.env,
      NODE_OPTIONS: `--import=${join(repoRoot, "apps/proxy/redirect.mjs")}`,
      BASETIDE_PROXY: proxy.url,
      AIRTABLE_API_KEY: "patX.y",
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

/** What the proxy received: method, path and body. */
async function sentBy(source: string, options = {}): Promise<string[]> {
  const { errors, exitCode } = await run(source, options);
  expect([exitCode, errors]).toEqual([0, ""]);
  return proxy.requests.map(({ line, body }) => `${line.replace(" HTTP/1.1", "")} ${body}`.trim());
}

const API = "https://api.airtable.com/v0/appX/T";

describe.skipIf(node === undefined)("requests of a program that does not know of the proxy", () => {
  test.for([
    ["a URL as text", `await fetch("${API}?a[]=%2F+b")`],
    ["a URL", `await fetch(new URL("${API}?a[]=%2F+b"))`],
    ["a Request", `await fetch(new Request("${API}?a[]=%2F+b"))`],
    ["a name with another case", `await fetch("https://API.airtable.com:443/v0/appX/T?a[]=%2F+b")`],
    ["https.get", `import https from "node:https"; https.get("${API}?a[]=%2F+b", (r) => r.resume())`],
    [
      "https.request by name",
      `import { request } from "https"; request(new URL("${API}?a[]=%2F+b"), (r) => r.resume()).end()`,
    ],
    [
      "options, with an agent and a Host",
      `import https from "https";
       https.request({ host: "api.airtable.com", port: 443, path: "/v0/appX/T?a[]=%2F+b", agent: new https.Agent(),
         headers: { Host: "api.airtable.com" } }, (r) => r.resume()).end()`,
    ],
    [
      "a URL and options",
      `import https from "https"; https.get("${API}?a[]=%2F+b", { headers: {} }, (r) => r.resume())`,
    ],
  ])("fetch and https, through %s", async ([, source]) => {
    expect(await sentBy(source!)).toEqual(["GET /api.airtable.com/v0/appX/T?a[]=%2F+b"]);
    expect(proxy.requests[0]!.headers.host).toBe(new URL(proxy.url).host);
  });

  test("https in a CommonJS program is redirected, too", async () => {
    const source = `require("https").get("${API}", (r) => r.resume())`;
    expect(await sentBy(source, { extension: "cjs" })).toEqual(["GET /api.airtable.com/v0/appX/T"]);
  });

  test("a path that a URL parser would change arrives unchanged", async () => {
    const source = `import https from "https";
      https.request({ hostname: "api.airtable.com", path: "/v0/appX/a|b%2e" }, (r) => r.resume()).end()`;
    expect(await sentBy(source)).toEqual(["GET /api.airtable.com/v0/appX/a|b%2e"]);
  });

  test("method, headers and body arrive, also those of a Request", async () => {
    const arrived: unknown[] = [];
    // A Request's body is sent in chunks.
    const server = Bun.serve({
      port: 0,
      async fetch(request) {
        const names = ["authorization", "x-mine"].map((name) => request.headers.get(name));
        arrived.push([request.method, new URL(request.url).pathname, ...names, await request.text()]);
        return new Response();
      },
    });
    onTestFinished(() => server.stop(true));
    const init = `{ method: "POST", headers: { Authorization: "Bearer patX.y", "X-Mine": "1" }, body: "{}" }`;
    const source = `await fetch(new Request("${API}", ${init})); await fetch("${API}", ${init});`;
    const { errors } = await run(source, { env: { BASETIDE_PROXY: `http://localhost:${server.port}` } });
    expect(errors).toBe("");
    const call = ["POST", "/api.airtable.com/v0/appX/T", "Bearer patX.y", "1", "{}"];
    expect(arrived).toEqual([call, call]);
  });

  test(
    "airtable.js writes through it",
    runs(pinned(repoRoot, "airtable", "airtable.js, with the preload")),
    async () => {
      const source = `import Airtable from "airtable";
      await new Airtable().base("appX")("My Tasks").create({ Name: "x" });`;
      expect(await sentBy(source)).toEqual([
        'POST /api.airtable.com/v0/appX/My%20Tasks/? {"fields":{"Name":"x"}}',
      ]);
    },
  );

  test(
    "axios writes through it, to either host",
    runs(pinned(repoRoot, "axios", "axios, with the preload")),
    async () => {
      const source = `import axios from "axios";
      await axios.patch("${API}/rec1", { fields: {} });
      await axios.post("https://content.airtable.com/v0/appX/rec1/F/uploadAttachment", {});`;
      expect(await sentBy(source)).toEqual([
        'PATCH /api.airtable.com/v0/appX/T/rec1 {"fields":{}}',
        "POST /content.airtable.com/v0/appX/rec1/F/uploadAttachment {}",
      ]);
    },
  );

  test("a proxy with a path of its own is reached under that path", async () => {
    const env = { BASETIDE_PROXY: `${proxy.url}/basetide/` };
    expect(await sentBy(`await fetch("${API}")`, { env })).toEqual([
      "GET /basetide/api.airtable.com/v0/appX/T",
    ]);
  });

  test("other hosts and paths are not redirected", async () => {
    const source = `import http from "http";
      await fetch("${elsewhere.url}/v0/appX/T");
      await new Promise((over) => http.get("${elsewhere.url}/v0/appX/T", (r) => r.resume().on("end", over)));
      for (const url of ["https://api.airtable.com.invalid/v0/x", "https://127.0.0.1:1/v0/x", "not a URL"])
        await fetch(url).then(() => process.exit(1), () => {});
      https.get("https://127.0.0.1:1/v0/x").on("error", () => {});
      import https from "https";`;
    expect(await sentBy(source)).toEqual([]);
    expect(elsewhere.requests).toHaveLength(2);
  });

  test("a child process is redirected, too", async () => {
    const source = `import { execFileSync } from "node:child_process";
      execFileSync(process.execPath, ["-e", 'fetch("${API}")']);`;
    expect(await sentBy(source)).toEqual(["GET /api.airtable.com/v0/appX/T"]);
  });

  test.for(["", "localhost:4000", "ftp://x"])(
    "without a valid BASETIDE_PROXY (%j) no program starts, and the error says what to set",
    async (address) => {
      const { errors, exitCode } = await run("console.log(1)", { env: { BASETIDE_PROXY: address } });
      expect(exitCode).not.toBe(0);
      expect(errors).toContain("Set BASETIDE_PROXY to the address of the Basetide proxy");
    },
  );
});
