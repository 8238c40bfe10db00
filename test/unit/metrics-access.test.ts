/** Access to metrics: this machine on the process's own port, or every client that reaches METRICS_PORT. */
import { networkInterfaces } from "node:os";
import { Counter, Registry } from "prom-client";
import { describe, expect, onTestFinished, test } from "vitest";
import { listen } from "../../core/http";
import { recordAddress } from "../../core/http/client-address";
import { healthAnswers, listenForMetrics } from "../../core/http/service";
import { createLogger } from "../../core/log";

const log = createLogger("silent", "test");
const OPEN = { metricsPort: undefined, clientIpHeader: "cf-connecting-ip" };

function registryOf(role: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ role });
  new Counter({ name: "calls_total", help: "Calls", labelNames: ["kind"], registers: [registry] }).inc({
    kind: "a",
  });
  return registry;
}

type Parts = Parameters<typeof healthAnswers>[0];

const appWith = (config: Parts["config"], more: Pick<Parts, "publicUrl"> = {}) => ({
  fetch: healthAnswers({ config, metrics: registryOf("worker"), ready: async () => {}, ...more }),
});

function serve(config = OPEN, host = "127.0.0.1", more: Pick<Parts, "publicUrl"> = {}): string {
  const listener = listen(appWith(config, more), { port: 0, portVariable: "PORT", host });
  onTestFinished(() => listener.stop());
  return `http://127.0.0.1:${listener.port}`;
}

describe("on the process's own port", () => {
  test("this machine can read them, by any of its loopback addresses", async () => {
    const answer = await fetch(`${serve()}/metrics`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toContain("text/plain");
    expect(await answer.text()).toContain('calls_total{kind="a",role="worker"} 1');
  });

  test.for([
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "x-real-ip",
    "Via",
    "CF-Connecting-IP",
  ])("a request that a reverse proxy forwards with %s gets 404", async (name) => {
    const answer = await fetch(`${serve()}/metrics`, { headers: { [name]: "127.0.0.1" } });
    expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: "not_found" } }]);
  });

  test.for(["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1", "128.0.0.1", "1127.0.0.1", undefined])(
    "a request from %s gets 404",
    async (address) => {
      const request = new Request("http://localhost/metrics");
      recordAddress(request, address);
      expect((await appWith(OPEN).fetch(request)).status).toBe(404);
    },
  );

  test.for(["console.example.com", "localhost.example.com", "127.0.0.1.example.com"])(
    "a request to the host %s, as a reverse proxy on this machine passes it on, gets 404",
    async (host) => {
      const answer = await fetch(`${serve()}/metrics`, { headers: { host } });
      expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: "not_found" } }]);
    },
  );

  test.for([
    ["https://console.example.com", 404],
    ["http://10.1.2.3:21000", 404],
    ["http://localhost:21000", 200],
    ["http://127.0.0.1", 200],
    ["http://[::1]:21000", 200],
  ] as const)("if clients use %s, a request from this machine gets %d", async ([publicUrl, status]) => {
    const address = serve(OPEN, "127.0.0.1", { publicUrl });
    expect((await fetch(`${address}/metrics`)).status).toBe(status);
    expect((await fetch(`${address}/healthz`)).status).toBe(200);
  });

  test("a request to this machine's address in a network gets 404", async () => {
    const [outer] = Object.values(networkInterfaces())
      .flat()
      .filter((at) => at && !at.internal && at.family === "IPv4");
    if (!outer) return;
    const port = new URL(serve(OPEN, "0.0.0.0")).port;
    expect((await fetch(`http://${outer.address}:${port}/metrics`)).status).toBe(404);
    expect((await fetch(`http://${outer.address}:${port}/healthz`)).status).toBe(200);
  });

  test("with METRICS_PORT every request gets 404", async () => {
    const address = serve({ ...OPEN, metricsPort: 9464 } as never);
    expect((await fetch(`${address}/metrics`)).status).toBe(404);
    expect((await fetch(`${address}/readyz`)).status).toBe(200);
  });
});

describe("on METRICS_PORT", () => {
  function metricsOf(...roles: string[]): string {
    const config = { metricsPort: 0, metricsHost: undefined, host: "127.0.0.1" };
    const listener = listenForMetrics(config, roles.map(registryOf), log)!;
    onTestFinished(() => listener.stop());
    return `http://127.0.0.1:${listener.port}`;
  }

  test("there are metrics for every client that reaches it, and nothing else", async () => {
    const address = metricsOf("worker");
    const answer = await fetch(`${address}/metrics`, { headers: { "x-forwarded-for": "10.1.2.3" } });
    expect([answer.status, await answer.text()]).toEqual([200, await registryOf("worker").metrics()]);
    for (const path of ["/", "/healthz", "/api/v1/bases", "/metrics/x"]) {
      expect((await fetch(address + path)).status, path).toBe(404);
    }
  });

  test("those of several roles are one page, on which each metric is described once", async () => {
    const text = await (await fetch(`${metricsOf("worker", "proxy")}/metrics`)).text();
    expect(text).toBe(
      [
        "# HELP calls_total Calls",
        "# TYPE calls_total counter",
        'calls_total{kind="a",role="worker"} 1',
        'calls_total{kind="a",role="proxy"} 1\n',
      ].join("\n"),
    );
  });

  test("there is no such listener without it", () => {
    expect(
      listenForMetrics({ metricsPort: undefined, metricsHost: undefined, host: undefined }, [], log),
    ).toBeUndefined();
  });
});
