/**
 * A primary and its standby behind one moving endpoint, like a provider's failover: a TCP proxy leads to the primary,
 * and after a failover to the other server, for new connections only.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { type FaultProxy, faultProxy } from "./fault-proxy";
import { killServer } from "./mortal-postgres";
import { scratchFolder } from "./scratch";
import { applySettings, primarySettings, type Standby, startStandby } from "./standby";

const SETTINGS = {
  fsync: "off",
  full_page_writes: "off",
  shared_buffers: "64MB",
  max_connections: "200",
};

export interface PostgresPair extends AsyncDisposable {
  /** The endpoint, as a superuser of the database `postgres`: leads to the primary before and after a failover. */
  url: string;
  endpoint: FaultProxy;
  /** Directly to the server that is the primary now. */
  readonly primaryUrl: string;
  /** The standby; undefined after a failover, unless the old primary became the standby. */
  readonly standby: Standby | undefined;
  /** Kills the primary, promotes the standby, moves the endpoint. What the standby had not received is lost. */
  failOver(): Promise<void>;
  /**
   * Stops the primary in order and promotes the standby; the old primary restarts on its port, read-only, as the
   * standby of the new one. Nothing is lost. The endpoint moves when the returned function is called: until then it
   * leads to the read-only server, like a cached DNS answer.
   */
  switchOver(): Promise<() => void>;
}

/** @param options.isSynchronous the primary confirms a commit only when the standby has it */
export async function postgresPair(options: { isSynchronous: boolean }): Promise<PostgresPair> {
  const folder = scratchFolder("pair");
  await using releases = new AsyncDisposableStack();
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const log = createLogger("fatal", "pair");
  const dataDir = join(folder, "postgres");
  const settings = { ...SETTINGS, ...primarySettings(dataDir) };
  const servers = new Set<EmbeddedPostgres>();
  releases.defer(async () => {
    for (const server of servers) await server.stop();
  });
  let primary = await startEmbeddedPostgres({ dataDir, port: 0, log, settings });
  servers.add(primary);
  let standby: Standby | undefined = await startStandby(
    { url: primary.url, dataDir },
    { dataDir: join(folder, "standby"), settings: SETTINGS },
  );
  servers.add(standby.server);
  const first = releases.use(standby);
  if (options.isSynchronous) await first.setSynchronous(true);
  const endpoint = releases.use(
    await faultProxy({ host: "127.0.0.1", port: primary.port }, { isPostgres: true }),
  );
  const move = (server: EmbeddedPostgres) => {
    endpoint.target = { host: "127.0.0.1", port: server.port };
  };
  const takeStandby = (): Standby => {
    if (!standby) throw new Error("There is no standby any more");
    const taken = standby;
    standby = undefined;
    return taken;
  };
  const kept = releases.move();
  return {
    url: endpoint.over(primary.url),
    endpoint,
    get primaryUrl() {
      return primary.url;
    },
    get standby() {
      return standby;
    },
    async failOver() {
      const next = takeStandby();
      await killServer(primary, dataDir);
      servers.delete(primary);
      primary = await next.promote();
      move(primary);
    },
    async switchOver() {
      const next = takeStandby();
      const old = primary;
      await old.stop();
      servers.delete(old);
      primary = await next.promote();
      writeFileSync(join(dataDir, "standby.signal"), "");
      const demoted = await startEmbeddedPostgres({
        dataDir,
        port: old.port,
        log,
        settings: { ...settings, ...applySettings(primary.url) },
      });
      servers.add(demoted);
      return () => move(primary);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
