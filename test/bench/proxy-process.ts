/** Starts the programs of the proxy's benches as processes of their own. */
import type { Fleet } from "../support/fleet";
import type { SandboxProcess } from "../support/sandbox-process";

interface Program {
  port: number;
  pid: number;
}

/**
 * Starts a proxy in front of the fleet's source. `BENCH_PROFILE` names a folder for a CPU profile of it, which is written
 * at its end.
 */
export function startProxyProcess(
  releases: AsyncDisposableStack,
  { ctx }: Fleet<SandboxProcess>,
  upstreams: string,
): Promise<Program> {
  const folder = process.env.BENCH_PROFILE;
  const profile = folder ? ["--cpu-prof", `--cpu-prof-dir=${folder}`] : [];
  return startPrinting(releases, [...profile, `${import.meta.dir}/../../apps/proxy/main.ts`], {
    DATABASE_URL: ctx.config.databaseUrl!,
    SECRET_KEY: ctx.config.secretKey!,
    DATA_DIR: ctx.config.dataDir,
    UPSTREAMS: upstreams,
    PROXY_PORT: "0",
    LOG_LEVEL: "info",
  });
}

/** Starts a program that prints its port, alone or in a line of the log. */
export async function startPrinting(
  releases: AsyncDisposableStack,
  command: string[],
  env: Record<string, string> = {},
): Promise<Program> {
  const child = Bun.spawn([process.execPath, ...command], {
    env: { ...process.env, ...env },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  releases.defer(async () => {
    child.kill();
    await child.exited;
  });
  let text = "";
  const reader = child.stdout.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += new TextDecoder().decode(part.value);
    const port = Number(/"port":(\d+)|^(\d+)\n/.exec(text)?.slice(1).find(Boolean));
    if (port) return { port, pid: child.pid };
  }
  throw new Error(`${command.join(" ")} did not start: ${text}`);
}
