import net from "node:net";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { startConsole } from "../../../apps/console/start";
import { type TestControl, testControl } from "../../support/control-support";
import { freshDatabase, type TestDatabase } from "../../support/database";
import { until } from "../../support/poll";

let control: TestControl;
let empty: TestDatabase;
beforeAll(async () => {
  [control, empty] = await Promise.all([testControl(), freshDatabase()]);
});
afterAll(async () => {
  await control?.[Symbol.asyncDispose]();
  await empty?.[Symbol.asyncDispose]();
});

/** The console as a process on an empty control plane. */
function spawnConsole(env: Record<string, string>) {
  const child = Bun.spawn([process.execPath, "apps/console/main.ts"], {
    env: {
      PATH: process.env.PATH ?? "",
      DATABASE_URL: empty.url,
      REPLICA_URL: inject("clusterUrl"),
      SECRET_KEY: Buffer.alloc(32, 1).toString("base64"),
      ...env,
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  let log = "";
  const reading = (async () => {
    for await (const chunk of child.stdout) log += Buffer.from(chunk).toString();
  })();
  return { child, reading, log: () => log };
}

test("a console migrates, serves, and ends cleanly at SIGTERM", async () => {
  const { child, reading, log } = spawnConsole({ CONSOLE_PORT: "0" });
  try {
    const port = await until(() => /"port":(\d+)/.exec(log())?.[1], {
      what: "the console is up",
      timeoutMs: 25_000,
    });
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
    expect(ready.status).toBe(200);
    expect(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).toContain('role="console"');
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    await reading;
    expect(log()).toContain("stopped");
  } finally {
    child.kill("SIGKILL");
  }
});

test("with METRICS_PORT and HOST, a process serves metrics there, and none on its own port", async () => {
  const { child, log } = spawnConsole({ CONSOLE_PORT: "0", METRICS_PORT: "0", HOST: "127.0.0.1" });
  try {
    await until(() => log().includes('"msg":"started"'), { what: "the console is up", timeoutMs: 30_000 });
    const portOf = (message: string) =>
      log()
        .split("\n")
        .filter((line) => line.includes(message))
        .map((line) => JSON.parse(line).port)[0];
    const [own, metrics] = [portOf("console listening"), portOf("metrics listening")];
    expect((await fetch(`http://127.0.0.1:${own}/metrics`)).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${own}/healthz`)).status).toBe(200);
    expect(await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()).toContain('role="console"');
    if (process.platform !== "linux") return;
    for (const port of [own, metrics])
      await expect(fetch(`http://127.0.0.2:${port}/healthz`)).rejects.toThrow();
  } finally {
    child.kill("SIGKILL");
  }
});

test("half-sent bodies from many networks stop no other body, and forms and JSON arrive whole", async () => {
  const { config } = control.ctx;
  const ctx = { ...control.ctx, config: { ...config, clientIpHeader: "x-client" }, metrics: new Registry() };
  const running = await startConsole(ctx, { port: 0 });
  const sockets: net.Socket[] = [];
  try {
    const begin = (at: number) =>
      new Promise<void>((resolve) => {
        const socket = net.connect(running.port, "127.0.0.1", () => {
          const path = at % 2 ? "/sign-in" : "/api/v1/bases";
          const type = at % 2 ? "application/x-www-form-urlencoded" : "application/json";
          socket.write(
            `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-Client: 198.51.${at % 60}.1\r\nContent-Type: ${type}\r\nContent-Length: 1000000\r\n\r\n`,
          );
          socket.write(Buffer.alloc(900_000, "x"), () => resolve());
        });
        sockets.push(socket.on("error", () => resolve()));
      });
    await Promise.all(Array.from({ length: 120 }, (_, at) => begin(at)));
    const post = (path: string, type: string, body: string) =>
      fetch(`http://127.0.0.1:${running.port}${path}`, {
        method: "POST",
        headers: {
          "content-type": type,
          "x-client": "203.0.113.9",
          accept: "text/html",
          "sec-fetch-site": "same-origin",
        },
        body,
        redirect: "manual",
      });
    const form = new URLSearchParams({
      email: "a@example.org",
      password: "wrong",
      more: "y".repeat(300_000),
    });
    const answer = await post("/sign-in", "application/x-www-form-urlencoded", form.toString());
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining("incorrect")]);
    const json = await post("/api/v1/bases", "application/json", `{"x":"${"y".repeat(300_000)}"}`);
    expect([json.status, await json.json()]).toMatchObject([401, { error: { code: "unauthorized" } }]);
  } finally {
    for (const socket of sockets) socket.destroy();
    await running.stop();
  }
}, 60_000);

test("a port in use is one line that names it and the variable, with exit code 1", async () => {
  const running = await startConsole(control.ctx, { port: 0 });
  try {
    const { child } = spawnConsole({ CONSOLE_PORT: String(running.port) });
    const [err, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    expect([code, err]).toEqual([
      1,
      `basetide console: Port ${running.port} is in use by another program. Stop it, or set CONSOLE_PORT to another port.\n`,
    ]);
  } finally {
    await running.stop();
  }
});

test("in production a console without a secret key does not start", async () => {
  const { child } = spawnConsole({ NODE_ENV: "production", SECRET_KEY: "" });
  const [err, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  expect([code, err]).toEqual([1, expect.stringContaining("SECRET_KEY is required in production")]);
});
