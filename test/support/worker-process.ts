/** A worker in a process of its own next to a fleet, so that a test can kill or freeze it. */
import { clusterUrl } from "./cluster-url";
import type { Fleet } from "./fleet";
import { type Program, startProgram } from "./program";

/** @param env overrides the fleet's own configuration */
export async function startWorkerProcess(
  { ctx: { config } }: Pick<Fleet, "ctx">,
  env: Record<string, string> = {},
): Promise<Program> {
  const worker = startProgram("apps/worker/main.ts", [], {
    DATABASE_URL: config.databaseUrl!,
    REPLICA_URL: clusterUrl(),
    SECRET_KEY: config.secretKey!,
    UPSTREAMS: Object.entries(config.upstreams)
      .map(([host, address]) => `${host}=${address}`)
      .join(","),
    WORKER_PORT: "0",
    LOG_LEVEL: "info",
    ...(config.replicaUrl ? { REPLICA_URL: config.replicaUrl } : {}),
    ...env,
  });
  await worker.says("started");
  return worker;
}
