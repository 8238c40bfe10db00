/**
 * Every call of pyairtable, replayed: through the proxy the source's own answers are returned, and SQL shows each
 * write.
 */
import http from "node:http";
import { gunzipSync, inflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compareToSource, type SourceDump } from "../../support/compare-to-source";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";
import {
  PYTHON_HEADERS,
  type PyairtableCall,
  pyairtableCalls,
  pythonJson,
  type Scene,
  TABLE,
} from "../../support/pyairtable-calls";

let stack: ProxyStack;
beforeAll(async () => {
  stack = await proxyStack();
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

function makeBase(): Scene {
  const baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [
      {
        name: TABLE,
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Count", type: "number", options: { precision: 1 } },
          { name: "Done", type: "checkbox", options: { icon: "check", color: "greenBright" } },
          { name: "Tags", type: "multipleSelects", options: { choices: [{ name: "red" }] } },
          { name: "Files", type: "multipleAttachments" },
        ],
      },
    ],
  });
  const tableId = stack.sandbox.control.dump(baseId).tables[0]!.id;
  return { baseId, tableId, recordIds: [], commentId: "", fieldId: "", webhookId: "", offset: "" };
}

interface Answer {
  status: number;
  body: string;
}

/** @param origin scheme, host and port, with the path before `/v0`; `host` is for the header, if it differs */
function send(origin: string, call: PyairtableCall, scene: Scene, host?: string): Promise<Answer> {
  const body = call.body && pythonJson(call.body(scene));
  const url = new URL(origin);
  return new Promise((resolve, reject) => {
    const request = http.request({
      hostname: url.hostname,
      port: url.port,
      method: call.method,
      // As recorded: a URL parser would write some of it differently.
      path: `${url.pathname.replace(/\/$/, "")}/v0/${call.path(scene)}`,
      headers: {
        ...PYTHON_HEADERS,
        ...(host === undefined ? {} : { Host: host }),
        Authorization: `Bearer ${stack.sandbox.key}`,
        ...(body === undefined
          ? {}
          : { "Content-Length": String(body.length), "Content-Type": "application/json" }),
      },
    });
    request.on("error", reject);
    request.on("response", async (response) => {
      const pieces: Uint8Array[] = [];
      for await (const piece of response) pieces.push(piece);
      const bytes = Buffer.concat(pieces);
      const encoding = response.headers["content-encoding"];
      const plain =
        encoding === "gzip" ? gunzipSync(bytes) : encoding === "deflate" ? inflateSync(bytes) : bytes;
      resolve({ status: response.statusCode ?? 0, body: plain.toString() });
    });
    request.end(body);
  });
}

/** Without the parts that are specific to one base and moment. */
function common({ status, body }: Answer): unknown {
  const text = body
    .replace(/"(https?:[^"]+)"/g, '"url"')
    .replace(/\b(app|rec|tbl|fld|viw|sel|att|com|ach|usr|itr)[0-9A-Za-z]{14}(\/\1?\w+)?\b/g, "$1")
    .replace(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"time"')
    .replace(/"macSecretBase64":"[^"]+"/, '"macSecretBase64":"secret"');
  return [status, text.startsWith("{") ? JSON.parse(text) : text];
}

describe.each([
  { by: "a host in the path", isInPath: true },
  { by: "the Host header, as where DNS leads to the proxy", isInPath: false },
])("addressed by $by", ({ isInPath }) => {
  let replicated: Replicated;
  /** One base is used through the proxy, and an equal one directly at the source. */
  let proxied: Scene;
  let direct: Scene;

  beforeAll(async () => {
    [proxied, direct] = [makeBase(), makeBase()];
    replicated = await stack.connect(proxied.baseId);
    await replicated.sync();
  });

  test.for(pyairtableCalls.map((call) => [call.name, call] as const))("%s", async ([, call]) => {
    const host = call.host ?? "api.airtable.com";
    const origin = `http://localhost:${stack.proxy.port}`;
    const theirs = await send(stack.sandbox.url, call, direct);
    const ours = isInPath
      ? await send(`${origin}/${host}`, call, proxied)
      : await send(origin, call, proxied, host);
    expect(common(ours)).toEqual(common(theirs));
    expect(ours.status).toBe(call.status ?? 200);
    call.keep?.(direct, JSON.parse(theirs.body) as never);
    call.keep?.(proxied, JSON.parse(ours.body) as never);
    if (!call.writes) return;
    const dump = stack.sandbox.control.dump(proxied.baseId) as unknown as SourceDump;
    const { cells, differences } = await compareToSource(replicated.reader, dump);
    expect(differences).toEqual([]);
    expect(cells).toBeGreaterThan(0);
  });
});
