/** The sandbox as a process of its own, so that it never shares an event loop with what is measured. */
import type { GenerateOptions } from "../../apps/sandbox/generate";
import type { LogSummary } from "../../apps/sandbox/request-log";
import type { SettingsPatch } from "../../apps/sandbox/settings";

export interface SandboxProcess extends AsyncDisposable {
  url: string;
  key: string;
  pid: number;
  /** @returns the base's id */
  generate(options: GenerateOptions): Promise<string>;
  settings(patch: SettingsPatch): Promise<void>;
  logSummary(): Promise<LogSummary>;
  /** Any call of the control API: `call("POST", "clock", {advanceMs})`. */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startSandboxProcess(): Promise<SandboxProcess> {
  const server = Bun.spawn(["bun", `${import.meta.dir}/../../apps/sandbox/main.ts`], {
    env: { ...process.env, SANDBOX_PORT: "0" },
    stdout: "pipe",
    stderr: "inherit",
  });
  const { url, key } = await announced(server.stdout);
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
  };
  return {
    url,
    key,
    pid: server.pid,
    generate: async (options) => ((await call("POST", "generate", options)) as { baseId: string }).baseId,
    settings: async (patch) => void (await call("POST", "settings", patch)),
    logSummary: async () => (await call("GET", "log/summary")) as LogSummary,
    call,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function announced(output: ReadableStream<Uint8Array>): Promise<{ url: string; key: string }> {
  let text = "";
  for await (const chunk of output) {
    text += new TextDecoder().decode(chunk);
    const [, url, key] = /Sandbox: (\S+)\nAPI key: (\S+)/.exec(text) ?? [];
    if (url && key) return { url, key };
  }
  throw new Error(`The sandbox did not start: ${text}`);
}
