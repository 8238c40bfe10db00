/**
 * Chooses the Postgres server for the tests: the one of DATABASE_URL; else a container, if a Docker engine answers;
 * else the embedded one, in a folder for the run.
 */
import { createHmac } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { scratchFolder } from "./scratch";

/** The engine must answer a ping within this time, or counts as absent. */
const PROBE_MS = 1000;
const IMAGE = "postgres:18.4";

/** Durability after a crash does not matter here; the time that it costs does. PL/pgSQL is loaded once, not by each session. */
export const unsafeButFast = {
  fsync: "off",
  full_page_writes: "off",
  synchronous_commit: "off",
  shared_preload_libraries: "plpgsql",
};

/** The server's URLs, by the rights of their role. */
export interface ServerUrls {
  superuser: string;
  control: string;
  cluster: string;
}

/** Passwords are derived from the superuser's, so that runs that share a server do not overwrite each other's. */
export function urlsOf(superuser: string): ServerUrls {
  const secret = new URL(superuser).password;
  const as = (username: string) => {
    const password = createHmac("sha256", secret).update(username).digest("hex");
    return Object.assign(new URL(superuser), { username, password }).href;
  };
  return { superuser, control: as("basetide_test_control"), cluster: as("basetide_test_cluster") };
}

export interface TestServer {
  /** A superuser's URL. */
  url: string;
  kind: "given" | "container" | "embedded";
  stop(): Promise<void>;
}

/** @param options of a server that is started; a given server has its own */
export async function startTestServer({
  maxConnections = 1000,
  settings: more = {},
}: {
  maxConnections?: number;
  settings?: Record<string, string>;
} = {}): Promise<TestServer> {
  const given = process.env.DATABASE_URL;
  if (given) return { url: given, kind: "given", stop: async () => {} };
  const settings = { ...unsafeButFast, max_connections: String(maxConnections), ...more };
  return (await answers(process.env.DOCKER_HOST)) ? startContainer(settings) : startEmbedded(settings);
}

/** Returns whether a Docker engine answers at `host` (the syntax of DOCKER_HOST). */
async function answers(host = "unix:///var/run/docker.sock"): Promise<boolean> {
  const unix = host.startsWith("unix://") ? host.slice("unix://".length) : undefined;
  const url = unix ? "http://localhost/_ping" : `${host.replace(/^tcp:/, "http:")}/_ping`;
  try {
    const signal = AbortSignal.timeout(PROBE_MS);
    return (await fetch(url, unix ? { unix, signal } : { signal })).ok;
  } catch {
    return false;
  }
}

async function startContainer(settings: Record<string, string>): Promise<TestServer> {
  const { PostgreSqlContainer } = await import("@testcontainers/postgresql");
  const flags = Object.entries(settings);
  const container = await new PostgreSqlContainer(IMAGE)
    .withCommand(["postgres", ...flags.flatMap(([name, value]) => ["-c", `${name}=${value}`])])
    .start();
  return {
    url: container.getConnectionUri(),
    kind: "container",
    stop: async () => void (await container.stop()),
  };
}

async function startEmbedded(settings: Record<string, string>): Promise<TestServer> {
  const folder = scratchFolder("test");
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, "postgres"),
    port: 0,
    log: createLogger("error", "test"),
    // A run writes little at a time; its log must not fill the memory.
    settings: { ...settings, max_wal_size: "512MB" },
  });
  return {
    url: server.url,
    kind: "embedded",
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
