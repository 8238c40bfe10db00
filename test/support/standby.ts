/**
 * A streaming standby of an embedded Postgres, for tests of failovers: it can be held back, made synchronous, and
 * promoted. It streams through a proxy: what is committed while the proxy is cut is lost by a promotion, as with any
 * asynchronous standby.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import postgres from "postgres";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { baseBackup } from "./base-backup";
import { type FaultProxy, faultProxy } from "./fault-proxy";
import { until } from "./poll";

/** The longest time until a standby has streamed everything, on a busy machine, ms. */
const STREAM_MS = 60_000;
/** Who may connect: the embedded server's own rules do not allow replication. */
const RULES = ["all", "replication"].map((which) => `host ${which} all 127.0.0.1/32 scram-sha-256\n`);

export interface Primary {
  /** Directly to the server, as a superuser. */
  url: string;
  dataDir: string;
}

export interface Standby extends AsyncDisposable {
  server: EmbeddedPostgres;
  dataDir: string;
  /** The proxy that carries the replication stream. */
  replication: FaultProxy;
  /** From now on, the primary confirms a commit only when the standby has it (or, with false, at once). */
  setSynchronous(isSynchronous: boolean): Promise<void>;
  /** Resolves when the standby has replayed everything that the primary had committed at the call. */
  caughtUp(): Promise<void>;
  /**
   * Makes it a primary; the old one continues if it still runs. @returns its server, which the caller must stop from
   * now on
   */
  promote(): Promise<EmbeddedPostgres>;
}

/** Settings of a server that standbys may stream from. Writes `hba_file` next to the data folder. */
export function primarySettings(dataDir: string): Record<string, string> {
  const rules = `${dataDir}.hba.conf`;
  writeFileSync(rules, RULES.join(""), { mode: 0o644 });
  return { hba_file: rules, wal_receiver_timeout: "5s", wal_retrieve_retry_interval: "100ms" };
}

/**
 * Starts a standby of `primary`, which was started with `primarySettings`, over a new copy of it.
 *
 * @param options.settings the primary's own: a standby's limits must not be lower
 */
export async function startStandby(
  primary: Primary,
  options: { dataDir: string; settings?: Record<string, string> },
): Promise<Standby> {
  const { dataDir, settings } = options;
  const slot = `standby_${randomBytes(4).toString("hex")}`;
  await baseBackup(primary.url, { fromDir: primary.dataDir, toDir: dataDir, slot });
  await using releases = new AsyncDisposableStack();
  await using following = new AsyncDisposableStack();
  const { hostname: host, port } = new URL(primary.url);
  const replication = following.use(await faultProxy({ host, port: Number(port) }, { isPostgres: false }));
  const server = await startEmbeddedPostgres({
    dataDir,
    port: 0,
    log: createLogger("fatal", "standby"),
    settings: {
      ...settings,
      ...primarySettings(dataDir),
      ...applySettings(replication.over(primary.url), slot),
    },
  });
  releases.defer(() => server.stop());
  const [there, here] = [primary.url, server.url].map((url) =>
    following.adopt(quietly(url), (sql) => sql.end({ timeout: 1 })),
  ) as [postgres.Sql, postgres.Sql];
  const [own, others] = [releases.move(), following.move()];
  let isPromoted = false;
  return {
    server,
    dataDir,
    replication,
    async setSynchronous(isSynchronous) {
      await there.unsafe(`alter system set synchronous_standby_names = '${isSynchronous ? "*" : ""}'`);
      await there`select pg_reload_conf()`;
      const wanted = isSynchronous ? "sync" : "async";
      const took = async () => {
        const rows = await there<{ state: string }[]>`
          select sync_state as state from pg_stat_replication where state = 'streaming'`;
        return rows.some(({ state }) => state === wanted);
      };
      await until(took, { what: `the standby is ${wanted}`, timeoutMs: STREAM_MS, retryErrors: true });
    },
    async caughtUp() {
      const [{ lsn } = { lsn: "" }] = await there<
        { lsn: string }[]
      >`select pg_current_wal_lsn()::text as lsn`;
      const isThere = async () => {
        const [row] = await here<{ is: boolean }[]>`
          select coalesce(pg_last_wal_replay_lsn() >= ${lsn}::text::pg_lsn, false) as is`;
        return row!.is;
      };
      // Until it has replayed the end of the copy, a standby accepts no connections.
      await until(isThere, {
        what: `the standby has replayed ${lsn}`,
        timeoutMs: STREAM_MS,
        retryErrors: true,
      });
    },
    async promote() {
      await promote(here);
      isPromoted = true;
      await others.disposeAsync();
      return server;
    },
    async [Symbol.asyncDispose]() {
      await others.disposeAsync();
      if (!isPromoted) await own.disposeAsync();
    },
  };
}

/** Settings of a standby that streams from `primaryUrl`; the file `standby.signal` makes it one. */
export function applySettings(primaryUrl: string, slot?: string): Record<string, string> {
  const { hostname, port, username, password } = new URL(primaryUrl);
  return {
    primary_conninfo: `host=${hostname} port=${port} user=${username} password=${password}`,
    ...(slot ? { primary_slot_name: slot } : {}),
  };
}

/** Promotes the server at the other end, and waits until it accepts writes. */
async function promote(sql: postgres.Sql): Promise<void> {
  const [row] = await sql<{ is: boolean }[]>`select pg_promote(true, ${STREAM_MS / 1000}) as is`;
  if (!row?.is) throw new Error("The standby was not promoted");
}

function quietly(url: string): postgres.Sql {
  return postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 5, fetch_types: false });
}
