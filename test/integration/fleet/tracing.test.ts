/** One id and one trace from a client's request through the proxy to the write of the replica. */
import { expect, inject, test } from "vitest";
import { BasetideError } from "../../../core/errors";
import { countedSpan, failSpan, span, startTracing } from "../../../core/trace";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { startProgram } from "../../support/program";
import { proxyStack } from "../../support/proxy-stack";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";

interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  status: { code: number; message?: string };
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
}

/** The part of the protocol's message that is read. */
interface Export {
  resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
}

/** A collector of traces, in the JSON form of OpenTelemetry's protocol. */
function collector() {
  const spans: Span[] = [];
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { resourceSpans } = (await request.json()) as Export;
      for (const { scopeSpans } of resourceSpans) {
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      return Response.json({});
    },
  });
  return { spans, url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) };
}

test("a write is one trace and one request id, from its request to the replica", async () => {
  using traces = collector();
  await using stack = await proxyStack();
  const baseId = stack.sandbox.control.createBase({
    name: "People",
    tables: [{ name: "People", fields: [{ name: "Name", type: "singleLineText" }] }],
  });
  const replicated = await stack.connect(baseId);
  await replicated.sync();
  const { config } = stack.ctx;
  const port = await freePort();
  await using proxy = startProgram("apps/proxy/main.ts", [], {
    DATABASE_URL: config.databaseUrl,
    REPLICA_URL: inject("clusterUrl"),
    SECRET_KEY: config.secretKey,
    UPSTREAMS: `api.airtable.com=${stack.sandbox.url}`,
    PROXY_PORT: String(port),
    LOG_LEVEL: "debug",
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
  });
  await proxy.says("started");
  const response = await fetch(`http://127.0.0.1:${port}/api.airtable.com/v0/${baseId}/People`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${stack.sandbox.key}`,
      "content-type": "application/json",
      "x-request-id": "order-7",
      traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01`,
    },
    body: JSON.stringify({ records: [{ fields: { Name: "Ada" } }] }),
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-request-id"), "the answer is the source's, unchanged").toBeNull();

  const lines = () =>
    proxy
      .output()
      .split("\n")
      .filter((line) => line.includes('"write shown"'));
  await until(() => lines().length > 0, { what: "the log says that the write is shown" });
  expect(JSON.parse(lines()[0]!)).toMatchObject({ requestId: "order-7", baseId: replicated.base.id });

  proxy.kill("SIGTERM");
  expect(await proxy.exited).toBe(0);
  const byName = new Map(traces.spans.map((span) => [span.name, span]));
  expect([...byName.keys()].sort()).toEqual(["proxy", "show in replicas", "source"]);
  const root = byName.get("proxy")!;
  expect(root.traceId).toBe(TRACE_ID);
  for (const child of ["source", "show in replicas"]) {
    expect(byName.get(child), child).toMatchObject({ traceId: TRACE_ID, parentSpanId: root.spanId });
  }
  const id = { key: "basetide.request_id", value: { stringValue: "order-7" } };
  expect(root.attributes).toContainEqual(id);
});

/** One test for both: a process starts tracing once. */
test("work that fails has a span with its code, and work of which there is much is counted", async () => {
  using traces = collector();
  const tracing = await startTracing("test", traces.url, { warn: () => {} } as never);
  const thrown = span("thrown", {}, () => Promise.reject(new BasetideError("source_unavailable")));
  await expect(thrown).rejects.toMatchObject({ code: "source_unavailable" });
  await span("told", {}, async () => failSpan("source_timeout"));
  await span("well", {}, async () => {});
  const request = (answer: () => Promise<void>) =>
    countedSpan("source", { "basetide.kind": "sweep" }, answer);
  await span("sync", {}, async () => {
    await Promise.all([request(async () => {}), request(async () => {})]);
    const failed = request(() => Promise.reject(new BasetideError("source_timeout")));
    await expect(failed).rejects.toMatchObject({ code: "source_timeout" });
  });
  await request(async () => {});
  await tracing.stop();
  expect(traces.spans.map(({ name, status }) => [name, status.message])).toEqual([
    ["thrown", "source_unavailable"],
    ["told", "source_timeout"],
    ["well", undefined],
    ["source", "source_timeout"],
    ["sync", undefined],
    ["source", undefined],
  ]);
  const [failed, sync, alone] = traces.spans.slice(-3);
  expect(failed).toMatchObject({ traceId: sync!.traceId, parentSpanId: sync!.spanId });
  expect(sync!.attributes).toContainEqual({ key: "basetide.source.count", value: { intValue: 3 } });
  expect(alone!.parentSpanId).toBeUndefined();
});

test("a collector that hangs keeps no process from ending in time and cleanly", async () => {
  await using stack = await proxyStack();
  using collector = Bun.serve({ port: 0, fetch: () => new Promise<Response>(() => {}) });
  const { config } = stack.ctx;
  const port = await freePort();
  await using proxy = startProgram("apps/proxy/main.ts", [], {
    DATABASE_URL: config.databaseUrl,
    REPLICA_URL: inject("clusterUrl"),
    SECRET_KEY: config.secretKey,
    UPSTREAMS: `api.airtable.com=${stack.sandbox.url}`,
    PROXY_PORT: String(port),
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
  });
  await proxy.says("started");
  const { status } = await fetch(`http://127.0.0.1:${port}/api.airtable.com/v0/appNone/People`, {
    headers: { authorization: `Bearer ${stack.sandbox.key}` },
  });
  expect(status).toBeGreaterThanOrEqual(400);
  const at = performance.now();
  proxy.kill("SIGTERM");
  expect(await proxy.exited).toBe(0);
  expect(performance.now() - at, "a container is killed after ten seconds").toBeLessThan(8000);
  expect(proxy.errors()).toBe("");
  expect(proxy.output()).toContain('"stopped"');
});
