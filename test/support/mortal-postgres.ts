/** A Postgres server for one test, over data that outlives it: the test can kill and restart it. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { readPidFile } from "../../apps/up/postgres/postmaster";
import { createLogger } from "../../core/log";
import { type FaultProxy, faultProxy } from "./fault-proxy";
import { freePort } from "./free-port";
import { until } from "./poll";
import { scratchFolder } from "./scratch";
import { primarySettings, type Standby, startStandby } from "./standby";

/** Without fsync, only a crash of the machine loses data, and not a killed server. Commits do reach the kernel. */
const SETTINGS = {
  fsync: "off",
  full_page_writes: "off",
  shared_buffers: "64MB",
  max_connections: "200",
  // Recovery starts at the last checkpoint.
  checkpoint_timeout: "30s",
};

/** A server that has not recovered from the end of a backend by then never will, ms. */
const RECOVERED_MS = 60_000;

export interface MortalPostgres extends AsyncDisposable {
  /** Directly to the server, while this one runs. */
  readonly url: string;
  readonly isUp: boolean;
  /** A proxy for other processes. It leads to the current server. */
  line(): Promise<FaultProxy>;
  /** Sends SIGKILL to the server and all its processes. */
  kill(): Promise<void>;
  /** Sends SIGKILL to one backend that serves a client, which makes the server end all its processes. */
  killBackend(): boolean;
  /** After `killBackend`: resolves when the server has replaced its processes, and accepts connections again. */
  recovered(): Promise<void>;
  start(): Promise<void>;
  /** Stops the server and all its processes with SIGSTOP: connections stay open, and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** A standby that streams from it. After `failOver`, the proxies lead there. */
  standby(): Promise<Standby>;
  /**
   * Kills the server, and promotes the standby on another port. What the standby had not received is lost.
   *
   * @param whileDown runs between the two
   */
  failOver(standby: Standby, whileDown: () => Promise<void>): Promise<void>;
}

export async function mortalPostgres(): Promise<MortalPostgres> {
  const folder = scratchFolder("chaos");
  let dataDir = join(folder, "postgres");
  const log = createLogger("fatal", "chaos");
  const lines = new Set<FaultProxy>();
  let server: EmbeddedPostgres | undefined;
  let port = await freePort();
  let standbys = 0;
  /** Its processes when a backend was killed. */
  let ending: number[] = [];

  async function start(): Promise<void> {
    const settings = { ...SETTINGS, ...primarySettings(dataDir) };
    use(await startEmbeddedPostgres({ dataDir, port, log, settings }));
  }

  function use(started: EmbeddedPostgres): void {
    server = started;
    port = started.port;
    void started.exited.then(async (lastLines) => {
      if (server === started) await restart(started, lastLines);
    });
    for (const line of lines) line.target = { host: "127.0.0.1", port };
  }

  /** As the supervisor of a server would. */
  async function restart(ended: EmbeddedPostgres, lastLines: string): Promise<void> {
    console.error(`This Postgres ended by itself and is started again: ${lastLines}`);
    server = undefined;
    await ended.stop();
    await start();
  }

  async function kill(): Promise<void> {
    const dying = server;
    server = undefined;
    if (dying) await killServer(dying, dataDir);
  }

  async function hasRecovered(): Promise<boolean> {
    const pid = readPidFile(dataDir)?.pid;
    if (!server || pid === undefined || childrenOf(pid).some((one) => ending.includes(one))) return false;
    const sql = postgres(server.url, { max: 1, onnotice: () => {}, connect_timeout: 3 });
    try {
      await sql`select 1`;
      return true;
    } finally {
      await sql.end({ timeout: 1 });
    }
  }

  /** As a supervisor that looks whether a server answers, and not only whether it runs. */
  async function replaceHung(): Promise<void> {
    const hung = server;
    await kill();
    console.error(`This Postgres hung and is started again: ${await hung?.exited}`);
    await start();
  }

  function signalAll(what: NodeJS.Signals): void {
    const pid = readPidFile(dataDir)?.pid;
    for (const one of pid === undefined ? [] : [pid, ...childrenOf(pid)]) signal(one, what);
  }

  await start();
  return {
    get url() {
      if (!server) throw new Error("This Postgres is dead");
      return server.url;
    },
    get isUp() {
      return server !== undefined;
    },
    async line() {
      const line = await faultProxy({ host: "127.0.0.1", port }, { isPostgres: true });
      lines.add(line);
      return line;
    },
    kill,
    killBackend() {
      const pid = readPidFile(dataDir)?.pid;
      ending = pid === undefined ? [] : childrenOf(pid);
      const victim = ending.find(servesClient);
      return victim !== undefined && signal(victim, "SIGKILL");
    },
    recovered: () =>
      until(hasRecovered, {
        what: "it has recovered from the end of a backend",
        timeoutMs: RECOVERED_MS,
        retryErrors: true,
      }).then(() => {}, replaceHung),
    start,
    freeze: () => signalAll("SIGSTOP"),
    thaw: () => signalAll("SIGCONT"),
    async standby() {
      if (!server) throw new Error("This Postgres is dead");
      const primary = { url: server.url, dataDir };
      return startStandby(primary, { dataDir: join(folder, `standby-${++standbys}`), settings: SETTINGS });
    },
    async failOver(standby, whileDown) {
      await kill();
      await whileDown();
      use(await standby.promote());
      rmSync(dataDir, { recursive: true, force: true });
      dataDir = standby.dataDir;
    },
    async [Symbol.asyncDispose]() {
      for (const line of lines) await line[Symbol.asyncDispose]();
      signalAll("SIGCONT");
      const last = server;
      server = undefined;
      await last?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Sends SIGKILL to the server over `dataDir` and all its processes. */
export async function killServer(server: EmbeddedPostgres, dataDir: string): Promise<void> {
  const pid = readPidFile(dataDir)?.pid;
  for (const one of pid === undefined ? [] : [pid, ...childrenOf(pid)]) signal(one, "SIGKILL");
  await server.exited;
  await server.stop();
}

function childrenOf(pid: number): number[] {
  return textOf(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
}

/** Such a backend's title names the client: `postgres: user database 127.0.0.1(port) idle`. */
function servesClient(pid: number): boolean {
  return /127\.0\.0\.1\(\d+\)/.test(textOf(`/proc/${pid}/cmdline`));
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** @returns false if the process no longer exists */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
