/** Starts worker, proxy and console in one process: `bun apps/main.ts all` and `bun run up`. */
import type { Context } from "../../core/context";
import type { ManagementContext } from "../../core/control/bases";
import { ensureDefaultCluster, startSpares } from "../../core/control/placement";
import { migrateControl } from "../../core/control/setup";
import type { Running } from "../../core/process";
import { openQueue } from "../../core/queue";
import { platforms } from "../../core/source";
import { startConsole } from "../console/start";
import { startProxy } from "../proxy/start";
import { startWorker } from "../worker/start";

/** Each has a context of its own: its name in the log and in metrics, and its connections to the control plane. */
export const ROLES = ["worker", "proxy", "console"] as const;

interface RunningAll {
  workerPort: number;
  proxyPort: number;
  consolePort: number;
  /** The console's context. */
  management: ManagementContext;
}

/**
 * Starts the roles on their own ports.
 *
 * @param contexts by role
 * @param releases what has started is pushed onto it
 * @throws BasetideError `port_taken`, `control_unavailable`
 */
export async function startAll(
  contexts: Record<(typeof ROLES)[number], Context>,
  releases: AsyncDisposableStack,
): Promise<RunningAll> {
  const { worker, proxy, console } = contexts;
  const databaseUrl = worker.config.databaseUrl!;
  const stacks = ROLES.map(() => new AsyncDisposableStack());
  const [workerStack, proxyStack, consoleStack] = stacks as [Stack, Stack, Stack];
  // All at once: each takes up to the drain of its listener, and the orchestrator waits for one. A stop that fails does not
  // cut the others short.
  releases.defer(async () => {
    const ends = await Promise.allSettled(stacks.map((stack) => stack.disposeAsync()));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  });
  await migrateControl(databaseUrl, worker.log);
  await ensureDefaultCluster(worker);
  const { port: workerPort } = stopping(await startWorker(worker), workerStack);
  const { port: proxyPort } = stopping(await startProxy(proxy), proxyStack);
  const queue = await openQueue(console, databaseUrl, { isWorker: false });
  consoleStack.defer(() => queue.close());
  const spares = stopping(startSpares(console), consoleStack);
  const management = { ...console, queue, platforms: platforms(console.config), spares };
  const { port: consolePort } = stopping(await startConsole(management), consoleStack);
  return { workerPort, proxyPort, consolePort, management };
}

type Stack = AsyncDisposableStack;

function stopping<T extends Running>(running: T, stack: Stack): T {
  stack.defer(() => running.stop());
  return running;
}
