/** A handle on one replica, and its overall state: epoch, read versions, catalog, `_sync_meta`. */
import { BasetideError } from "../errors";
import type { ServerUrl } from "../external";
import { CLOSE_SECONDS } from "../postgres";
import { onReplica, type ReplicaSql, readValue, replicaPool, type Schemas, schemasOf } from "./connection";
import type { Catalog, CatalogTable } from "./plan";
import { type ServerUse, serverName } from "./server-pools";
import type { ReadAs, TableSpec } from "./spec";

export interface Replica extends Schemas, AsyncDisposable {
  sql: ReplicaSql;
  /** Names the server that the database is on. */
  server: string;
  /** Returns whether a statement would run without a login. */
  isConnected(): boolean;
  /**
   * Keeps the connection between statements until `release`, or for `ms` after the first one, even if other replicas
   * wait. Without it, each statement may need a login while the server's connections are used up.
   */
  keep(ms: number): void;
  release(): void;
  /**
   * Reports that a statement has used plans of this table, or that it is prepared, which a session keeps until it ends. After
   * MOST_PLANNED of these, the next statement gets a new session.
   */
  planned(what: string): void;
  /** Closes the connections, and frees what they need, until the next statement. Waits for those that are running. */
  rest(): Promise<void>;
  /** Runs one statement without parameters on a connection of its own, which is closed afterwards. */
  once<Row extends object>(text: string): Promise<Row[]>;
  close(): Promise<void>;
}

/** Tables and statements whose plans the sessions of a replica keep: 0.5 to 0.8 MB for each table with 15 fields. */
const MOST_PLANNED = 100;

/** The location of a replica: the owner's URL of its database, and its schema there. */
export interface ReplicaTarget {
  url: ServerUrl;
  schema: string;
}

/** Opens a replica that `installReplica` has installed. Connects on first use. */
export function openReplica(target: ReplicaTarget, use: ServerUse = "sync"): Replica {
  let pool: ReturnType<typeof replicaPool> | undefined;
  let isClosed = false;
  const planned = new Set<string>();
  const opened = () => {
    pool ??= replicaPool(target.url, { use });
    return pool;
  };
  const end = async () => {
    const ended = pool;
    pool = undefined;
    planned.clear();
    ended?.release();
    await ended?.sql.end({ timeout: CLOSE_SECONDS });
  };
  const close = async () => {
    isClosed = true;
    await end();
  };
  return {
    ...schemasOf(target.schema),
    server: serverName(target.url),
    get sql() {
      const { sql } = opened();
      // As with any pool that has ended, its statements fail.
      if (isClosed) void sql.end({ timeout: 0 });
      return sql;
    },
    isConnected: () => pool?.isConnected() ?? false,
    keep: (ms) => opened().keep(ms),
    release: () => pool?.release(),
    planned(what) {
      planned.add(what);
      if (planned.size <= MOST_PLANNED || !pool) return;
      if (pool.closeIdle() > 0) planned.clear();
      // Clients decide which statements these are, and how often: none of the connections may ever be idle.
      else if (use === "reads") end().catch(() => {});
    },
    rest: end,
    async once<Row extends object>(text: string) {
      const { sql } = replicaPool(target.url, { use, isOnce: true });
      try {
        return [...(await sql.unsafe<Row[]>(text).simple())];
      } finally {
        void sql.end({ timeout: CLOSE_SECONDS });
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The epoch of a new lease, and what the replica was like when it began. */
interface EpochClaim {
  epoch: number;
  /** The epoch before, and how often its lease was renewed. */
  previousEpoch: number;
  previousRenewals: number;
  /** Of the server, its timeline and the database, as far as the server reveals them. */
  identity: string;
  /** Earlier claims are missing, and so may be other commits. */
  hasLost: boolean;
}

/**
 * Raises the epoch: from now on only the holder of the new epoch may sync this base (I5).
 *
 * @param above the greatest epoch that is recorded in the control plane: the new one is greater
 */
export function claimEpochAbove({ sql, swap }: Replica, above: number): Promise<EpochClaim> {
  return onReplica(async () => {
    const [claim] = await sql<EpochClaim[]>`
      select raised as epoch, previous as "previousEpoch", previous_renewals as "previousRenewals", identity,
        has_lost as "hasLost"
      from ${sql.unsafe(swap)}.claim(${above})`;
    return claim!;
  });
}

/** The same where no epoch is recorded. */
export async function claimEpoch(replica: Replica): Promise<number> {
  return (await claimEpochAbove(replica, 0)).epoch;
}

/**
 * Renews a lease: checks in one statement what a new lease would find.
 *
 * @param renewals how often it was renewed before
 * @returns false if the lease must end: something is missing that the next one restores, or commits were lost
 * @throws BasetideError `lease_lost`
 */
export function renewLease({ sql, swap }: Replica, epoch: number, renewals: number): Promise<boolean> {
  return readValue(
    () => sql<{ value: boolean }[]>`select ${sql.unsafe(swap)}.renew(${epoch}, ${renewals}) as value`,
  );
}

/**
 * Detects changes that others made to our tables, and records in the catalog which tables must be rebuilt.
 *
 * @returns ids of the tables whose rows may be gone, as by TRUNCATE
 * @throws BasetideError `lease_lost`
 */
export function recordDamage({ sql, swap }: Replica, epoch: number): Promise<string[]> {
  return readValue(
    () => sql<{ value: string[] }[]>`select ${sql.unsafe(swap)}.record_damage(${epoch}) as value`,
  );
}

/**
 * Returns a read version. Take it before the source is asked for a row image, and pass it when the image is applied. A
 * read version older than necessary is safe: its image only loses more often.
 */
export function takeReadVersion({ sql, swap }: Replica): Promise<number> {
  return readValue(() => sql<{ value: number }[]>`select ${sql.unsafe(swap)}.read_version() as value`);
}

/** What a sync learns when it begins, in one statement. */
interface SyncBegin {
  /** Taken when the sync began. */
  readVersion: number;
  /** The catalog is still in the state that it was known in. */
  isSameCatalog: boolean;
  /** Ids of the tables that were written beyond the given applied versions: their recent-writes log must be read. */
  written: string[];
}

/**
 * Records in `_sync_meta` that a sync starts now.
 *
 * @throws BasetideError `lease_lost`
 */
export function beginSync({ sql, swap }: Replica, epoch: number, known: KnownTables): Promise<SyncBegin> {
  const { catalog, ids, versions, loggedUpTo } = argumentsOf(known);
  return onReplica(async () => {
    const [row] = await sql<SyncBegin[]>`
      select read_version as "readVersion", is_same_catalog as "isSameCatalog", coalesce(written, '{}') as written
      from ${sql.unsafe(swap)}.mark_sync(${epoch}, false, true, true,
        ${catalog}::text::bigint, ${ids}::text[], ${versions}::bigint[], ${loggedUpTo}::bigint)`;
    return row!;
  });
}

/** What is known of a replica's tables when a sync begins. */
export interface KnownTables {
  /** The state of the known catalog; null if none is known. */
  catalog: string | null;
  /** Up to which applied version the log of each table has been read, by table id. */
  loggedUpTo: ReadonlyMap<string, number>;
}

/** A sync that the end of the one before has begun. */
interface NextSyncBegin extends SyncBegin {
  /** Whether the recent-writes log had any entries. */
  hasRecentWrites: boolean;
}

/**
 * Records in `_sync_meta` that the sync has completed now, unless other processes have written to a table beyond the
 * applied versions in `known`.
 *
 * @param options.begins whether the next sync begins with the end of this one
 * @param options.isChecked the sync has dealt with the tables that other processes have written to: it completes anyway
 * @returns the ids of those tables if it has not completed; otherwise `issues`, the state of `_sync_issues`, which
 *   differs if they do, and the next sync
 * @throws BasetideError `lease_lost`
 */
export function completeSync(
  { sql, swap }: Replica,
  epoch: number,
  known: KnownTables,
  { begins, isChecked }: { begins: boolean; isChecked: boolean },
): Promise<{ overtaken: string[] } | { overtaken: null; issues: string; next: NextSyncBegin | undefined }> {
  const { catalog, ids, versions, loggedUpTo } = argumentsOf(known);
  return onReplica(async () => {
    const [row] = await sql<(NextSyncBegin & { overtaken: string[] | null; issues: string })[]>`
      select overtaken, read_version as "readVersion", is_same_catalog as "isSameCatalog",
        coalesce(written, '{}') as written, issues, has_recent_writes as "hasRecentWrites"
      from ${sql.unsafe(swap)}.mark_sync(${epoch}, true, ${begins}, ${isChecked},
        ${catalog}::text::bigint, ${ids}::text[], ${versions}::bigint[], ${loggedUpTo}::bigint)`;
    const { overtaken, issues, ...next } = row!;
    if (overtaken && !isChecked) return { overtaken };
    return { overtaken: null, issues, next: begins ? next : undefined };
  });
}

/** What is known, as `mark_sync` takes it. */
function argumentsOf({ catalog, loggedUpTo }: KnownTables) {
  const versions = [...loggedUpTo.values()];
  const least = Math.min(...versions, Number.MAX_SAFE_INTEGER);
  return { catalog, ids: [...loggedUpTo.keys()], versions, loggedUpTo: least };
}

/** A catalog, and the state by which `beginSync` tells that it has not changed. */
export interface KnownCatalog {
  catalog: Catalog;
  state: string;
}

/** Returns the live tables, by the source's table id. */
export async function loadCatalog(replica: Replica): Promise<Catalog> {
  return (await readCatalog(replica)).catalog;
}

/**
 * Returns the live tables, by the source's table id, and the catalog's state.
 *
 * @param known an earlier one of the same lease: of many tables that go live one after the other, only the specs of new
 *   shapes are read again
 */
export function readCatalog({ schema, sql, swap }: Replica, known?: Catalog): Promise<KnownCatalog> {
  const before = new Map(Array.from(known?.values() ?? [], (table) => [table.shape, table]));
  const shapes = [...before.keys()];
  return onReplica(async () => {
    const rows = await sql<
      {
        id: string;
        shape: number;
        spec: TableSpec | null;
        readAs: ReadAs | null;
        other: string | null;
        us: string;
        state: string;
      }[]
    >`
      select t.table_id as id, t.shape,
        case when t.shape <> all (${shapes}::integer[]) then t.spec end as spec,
        case when t.shape <> all (${shapes}::integer[]) then t.read_as end as "readAs",
        case when r.rolname <> current_user then r.rolname end as other, current_user::text as us,
        -- As in mark_sync().
        (bit_xor(hashint8extended(coalesce(c.relowner::bigint, 0), hashtextextended(t.table_id, t.xmin::text::bigint)))
          over ())::text as state
      from ${sql.unsafe(swap)}._tables as t
        left join pg_class as c on c.relnamespace = (select to_regnamespace(${schema})) and c.relname = t.name::name
        left join pg_roles as r on r.oid = c.relowner`;
    const catalog: Catalog = new Map(
      rows.map(({ id, shape, other, us, ...row }) => {
        const { spec, readAs } = row.spec ? { spec: row.spec, readAs: row.readAs } : before.get(shape)!;
        const remedy = `Basetide needs this name: give it to the role ${us}, or rename or drop it`;
        const taken = other && `${schema}.${spec.name} belongs to the role ${other}, and ${remedy}`;
        return [id, { shape, spec, readAs: readAs ?? undefined, ...(taken && { taken }) }];
      }),
    );
    return { catalog, state: rows[0]?.state ?? "0" };
  });
}

/**
 * Called before a live table is read or written by its name. Reading a view of another role would run its code.
 *
 * @throws BasetideError `destination_invalid` if the table of that name belongs to another role
 */
export function requireOwn({ taken }: CatalogTable): void {
  if (taken !== undefined) throw new BasetideError("destination_invalid", taken);
}

/** Records in the catalog that all cells of the table have been read. */
export async function markRead(
  { sql, swap }: Replica,
  epoch: number,
  tableId: string,
  readAs: ReadAs,
): Promise<void> {
  await onReplica(
    () =>
      sql`select ${sql.unsafe(swap)}.mark_read(${epoch}, ${tableId}, ${JSON.stringify(readAs)}::text::jsonb)`,
  );
}

/** Records in `_sync_meta` that a sync starts now, or is running and started `agoMs` before now. */
export async function markSyncStarted(replica: Replica, epoch: number, agoMs = 0): Promise<void> {
  if (agoMs <= 0) return markSync(replica, epoch, { completes: false, begins: true });
  const { sql, swap } = replica;
  await onReplica(
    () => sql`select ${sql.unsafe(swap)}.mark_sync_started(${epoch}, ${agoMs} * interval '1 ms')`,
  );
}

/**
 * Records in `_sync_meta` that the sync has completed now.
 *
 * @param begins whether the next sync begins with the end of this one
 */
export function markSyncCompleted(replica: Replica, epoch: number, begins = false): Promise<void> {
  return markSync(replica, epoch, { completes: true, begins });
}

/** Records in `_sync_meta` that a sync which started `agoMs` before now has completed and found nothing to change. */
export async function markSyncUnchanged({ sql, swap }: Replica, epoch: number, agoMs: number): Promise<void> {
  await onReplica(
    () => sql`select ${sql.unsafe(swap)}.mark_sync_unchanged(${epoch}, ${agoMs} * interval '1 ms')`,
  );
}

/**
 * The same for a base at rest, in one message on a connection of its own.
 *
 * @returns whether tables and views are as they were left; if not, the next lease repairs them
 */
export function markAtRest({ once, swap }: Replica, epoch: number, agoMs: number): Promise<boolean> {
  return readValue(() =>
    once<{ value: boolean }>(
      `select ${swap}.mark_at_rest(${Math.trunc(epoch)}, ${Number(agoMs)} * interval '1 ms') as value`,
    ),
  );
}

/** Records in `_sync_meta` that no sync is running: the previous one, if any, ended without completing. */
export async function markSyncEnded({ sql, swap }: Replica, epoch: number): Promise<void> {
  await onReplica(() => sql`select ${sql.unsafe(swap)}.mark_sync_ended(${epoch})`);
}

async function markSync(
  { sql, swap }: Replica,
  epoch: number,
  { completes, begins }: { completes: boolean; begins: boolean },
): Promise<void> {
  await onReplica(
    () => sql`
      select from ${sql.unsafe(swap)}.mark_sync(${epoch}, ${completes}, ${begins}, true, null, null, null, null)`,
  );
}
