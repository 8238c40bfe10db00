/** The service that `bench traffic` measures: every part in its own process, and a base and a user for each mode. */

import { createAccount } from "../../../core/control/accounts";
import { type Base, createBase, getBase, resume } from "../../../core/control/bases";
import type { BaseSettings } from "../../../core/control/bases/settings";
import { type Fleet, startFleet } from "../../support/fleet";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { startProgram } from "../../support/program";
import { type SandboxProcess, startSandboxProcess } from "../../support/sandbox-process";
import { startTestServer } from "../../support/server";

const SHAPE = { records: 2000, tables: 4 };
const READY_TIMEOUT_MS = 180_000;
const PASSWORD = "correct horse";

export interface Scene extends AsyncDisposable {
  source: SandboxProcess;
  fleet: Fleet<SandboxProcess>;
  /** Connects a new base of a new user, and waits until `isReady`; until its first sync unless given. */
  connect(settings: Partial<BaseSettings>, isReady?: (base: Base) => boolean): Promise<Connected>;
  /** The connections that all processes together have opened to the source; 0 without a network. */
  connectionsOpened(): Promise<number>;
}

export interface Connected {
  base: Base;
  /** Requests one record through a proxy. @returns the status, and the time, ms */
  ask(proxy: number): Promise<{ status: number; ms: number }>;
}

/** @param network `80±20`; absent: loopback without TLS */
export async function startScene(network: string | undefined): Promise<Scene> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess({ network }));
  const consolePort = await freePort();
  const CONSOLE_URL = `http://127.0.0.1:${consolePort}`;
  const fleet = releases.use(
    await startFleet({ source, databaseUrl: server.url, workers: 0, env: { CONSOLE_URL } }),
  );
  const proxyPorts = [await freePort(), await freePort()];
  const start = async (script: string, port: Record<string, string>) => {
    const env = {
      DATABASE_URL: server.url,
      SECRET_KEY: fleet.ctx.config.secretKey!,
      CONSOLE_URL,
      LOG_LEVEL: "info",
      ...source.clientEnv,
      ...port,
    };
    await releases.use(startProgram(script, [], env)).says("started");
  };
  await Promise.all([
    start("apps/console/main.ts", { CONSOLE_PORT: String(consolePort) }),
    ...proxyPorts.map((port) => start("apps/proxy/main.ts", { PROXY_PORT: String(port) })),
    start("apps/worker/main.ts", { WORKER_PORT: "0" }),
    start("apps/worker/main.ts", { WORKER_PORT: "0" }),
  ]);
  const account = await createAccount(fleet.ctx.db, { email: "traffic@example.org", password: PASSWORD });
  let seed = 0;
  const connect: Scene["connect"] = async (settings, isReady = (base) => base.sync !== null) => {
    const sourceBaseId = await source.generate({ ...SHAPE, seed: ++seed });
    // The source's other limit, per user, is not measured here.
    const user = { id: `usr${sourceBaseId.slice(3)}`, email: `${sourceBaseId}@example.org` };
    const { token } = (await source.call("POST", "keys", { user })) as { token: string };
    const connected = await createBase(fleet.ctx, account.id, {
      platform: "airtable",
      apiKey: token,
      sourceBaseId,
      settings: { live: false, ...settings, paused: true },
    });
    // This process has connected it without the network: those requests must not count with the measured ones.
    await source.call("POST", "quota", { reset: true, baseId: sourceBaseId });
    await resume(fleet.ctx, connected);
    const ready = async () => {
      const base = await getBase(fleet.ctx.db, connected.id);
      return isReady(base) && base;
    };
    const base = await until(ready, {
      what: "a base is ready",
      timeoutMs: READY_TIMEOUT_MS,
      intervalMs: 200,
    });
    const ask = async (proxy: number) => {
      const from = performance.now();
      const path = `api.airtable.com/v0/${sourceBaseId}/Projects?maxRecords=1`;
      const answer = await fetch(`http://127.0.0.1:${proxyPorts[proxy % 2]}/${path}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await answer.arrayBuffer();
      return { status: answer.status, ms: performance.now() - from };
    };
    return { base, ask };
  };
  const held = releases.move();
  return {
    source,
    fleet,
    connect,
    connectionsOpened: async () => (network ? (await source.network()).opened : 0),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}
