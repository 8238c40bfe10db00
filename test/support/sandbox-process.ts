/** Runs the sandbox as its own process, so that it never shares an event loop with the code that is measured. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { GenerateOptions } from "../../apps/sandbox/generate";
import type { NetworkState } from "../../apps/sandbox/network";
import type { LogSummary } from "../../apps/sandbox/request-log";
import type { SettingsPatch } from "../../apps/sandbox/settings";
import { putFirst } from "./priority";
import { scratchFolder } from "./scratch";

export interface SandboxProcess extends AsyncDisposable {
  /** The URL for this process, which bypasses the simulated network. */
  url: string;
  key: string;
  pid: number;
  /**
   * Environment of the client programs: they reach the sandbox through the simulated network, and trust its
   * certificate.
   */
  clientEnv: Record<string, string>;
  /** @returns the base's id */
  generate(options: GenerateOptions): Promise<string>;
  settings(patch: SettingsPatch): Promise<void>;
  logSummary(): Promise<LogSummary>;
  network(): Promise<NetworkState>;
  /** Any call of the control API: `call("POST", "clock", {advanceMs})`. */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * @param options.network in the format of `SANDBOX_NETWORK` (`80±20`); absent: loopback
 * @param options.tls encrypt without a network, too
 */
export async function startSandboxProcess(
  options: { network?: string | undefined; tls?: boolean } = {},
): Promise<SandboxProcess> {
  const isEncrypted = options.network !== undefined || options.tls === true;
  const folder = scratchFolder("sandbox");
  const caFile = join(folder, "ca.pem");
  const server = Bun.spawn(["bun", `${import.meta.dirname}/sandbox-program.ts`], {
    env: {
      ...process.env,
      SANDBOX_PORT: "0",
      ...(options.network ? { SANDBOX_NETWORK: options.network } : {}),
      ...(isEncrypted ? { SANDBOX_TLS: "true", SANDBOX_CA_FILE: caFile } : {}),
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  if (options.network) putFirst(server.pid);
  const { url: address, key, controlUrl: url } = await announced(server.stdout);
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${url}/_sandbox/${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  };
  const stop = async () => {
    server.kill();
    await server.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    url,
    key,
    pid: server.pid,
    clientEnv: {
      UPSTREAMS: `api.airtable.com=${address},content.airtable.com=${address}`,
      ...(isEncrypted ? { NODE_EXTRA_CA_CERTS: caFile } : {}),
    },
    generate: async (options) => ((await call("POST", "generate", options)) as { baseId: string }).baseId,
    settings: async (patch) => void (await call("POST", "settings", patch)),
    logSummary: async () => (await call("GET", "log/summary")) as LogSummary,
    network: async () => (await call("GET", "network")) as NetworkState,
    call,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function announced(output: ReadableStream<Uint8Array>) {
  let text = "";
  for await (const chunk of output) {
    text += new TextDecoder().decode(chunk);
    const [, url, key, controlUrl] = /Sandbox: (\S+)\nAPI key: (\S+)\nControl: (\S+)\n/.exec(text) ?? [];
    if (url && key && controlUrl) return { url, key, controlUrl };
  }
  throw new Error(`The sandbox did not start: ${text}`);
}
