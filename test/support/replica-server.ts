/**
 * A separate Postgres server for replicas, for tests in which customers write: customers must not reach the server that
 * holds the control plane.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { loginOf, prepareCluster } from "../../core/replica";
import { scratchFolder } from "./scratch";
import { unsafeButFast, urlsOf } from "./server";

export interface ReplicaServer extends AsyncDisposable {
  superuserUrl: string;
  /** Admin URL of the server as a cluster. */
  clusterUrl: string;
}

/** @param settings lines for `postgresql.conf` */
export async function replicaServer(settings: Record<string, string> = {}): Promise<ReplicaServer> {
  const folder = scratchFolder("replicas");
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, "postgres"),
    port: 0,
    log: createLogger("error", "test"),
    settings: {
      ...unsafeButFast,
      max_connections: "200",
      shared_buffers: "64MB",
      max_wal_size: "512MB",
      ...settings,
    },
  });
  const { cluster } = urlsOf(server.url);
  await prepareCluster(server.url, loginOf(cluster, "the cluster's URL"), { isDedicated: true });
  return {
    superuserUrl: server.url,
    clusterUrl: cluster,
    async [Symbol.asyncDispose]() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
