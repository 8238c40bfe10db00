/**
 * The data that a worker caches about a base between syncs. If it is lost, rows are compared in SQL again; nothing
 * else happens.
 */

import { BasetideError } from "../../errors";
import type {
  AttachmentSigner,
  CatalogTable,
  CellsToForget,
  KnownCatalog,
  RecordMapper,
  TableSpec,
} from "../../replica";
import { compileMapper } from "../../replica";
import type { RememberedPage, SourceSchema, SourceSelection } from "../../source";
import { SourceClock } from "../../source";
import type { RunReport, SchemaError, SyncedBase } from "../host";
import { TWICE_A_DAY_MS } from "../pacing";
import type { FilledBuild } from "./filled-build";
import { Fingerprints } from "./fingerprints";
import type { LiveCache } from "./live-cache";
import { MassChange } from "./mass-change";
import { Problems } from "./problems";
import { TableFailures } from "./table-failures";

export interface TableCache {
  live: CatalogTable;
  map: RecordMapper;
  /** While the base rests: `live` has no columns, and `map` is missing. `tableCache` restores both. */
  isPacked?: boolean;
  /** True if the URLs of its attachments are ours: they do not expire and need no refresh. */
  hasLastingUrls: boolean;
  fingerprints: Fingerprints;
  /** The pages of the table's list, as the last sweep read them. */
  pages: (RememberedPage | undefined)[];
  /** A record that the last sweep has seen. */
  witness?: string | undefined;
  /** True if the fingerprints cover every row of the replica, which needs a complete sweep. */
  isComplete: boolean;
  massChange: MassChange;
  /** True if records without an id are recorded as unreadable. */
  hasUnreadable?: boolean;
  /** When the last sweep began that compared every record with its row in SQL (performance.now()). */
  comparedAt: number;
  /** The recent-writes log has been read up to this applied version. */
  loggedUpTo: number;
}

/** What the previous worker knew of the rows of a table. */
export interface HandedOver extends Pick<TableCache, "comparedAt" | "loggedUpTo"> {
  shape: number;
  /** As `Fingerprints` packs them. */
  fingerprints: Uint8Array;
}

/** A sweep of all tables one by one, which may take many leases. */
export interface SweepScan
  extends Pick<RunReport, "startedAt" | "seen" | "inserted" | "updated" | "deleted" | "requests" | "waitMs"> {
  /** Ids of the tables that it has yet to read, in order. */
  remaining: string[];
  /** It is reported. Tables that remain could not be read: they are swept as soon as they can be. */
  isOver: boolean;
}

/** Longer than the source has ever been seen to answer "no records" for a table that has them. */
const EMPTY_SPELL_MS = 90_000;

export class BaseCache {
  /** The lease that filled this cache: it is valid only if no other worker had the base in between. */
  epoch: number;
  /** How often that lease was renewed: if the replica knows of fewer renewals, it has lost commits. */
  renewals = 0;
  /** The database that the cache describes. */
  databaseId: string | null = null;
  /** The selection by which `schema` was read. */
  selection: SourceSelection | null = null;
  schema: SourceSchema | null = null;
  /** The same as compressed JSON, while the base rests. */
  packedSchema: Uint8Array | null = null;
  /** The cells in plain text that tables had at the last schema check, and should not. */
  toForget: CellsToForget[] = [];
  /** The replica's catalog as it was last read. */
  catalog: KnownCatalog | null = null;
  /** The state of `_sync_issues` whose issues the last run reported. */
  issuesState: string | null = null;
  /** The request for the schema that is running. */
  schemaAsking: Promise<void> | undefined;
  /** How long the source took to answer the last one, ms. */
  schemaTookMs = 0;
  /** Why the schema cannot be read; how often that failed in a row; and when it may be requested again (performance.now()). */
  schemaError: SchemaError | null = null;
  schemaFailures = 0;
  schemaRetryAt = Number.NEGATIVE_INFINITY;
  /** When the schema must be read again because something was missing from it (performance.now()). */
  schemaLookAt = Number.POSITIVE_INFINITY;
  /** Since when tables and fields have been missing from the schema, and when one was last removed (performance.now()). */
  vanishedAt = new Map<string, number>();
  removedAt = Number.NEGATIVE_INFINITY;
  /** Tables that cannot be read. */
  failing = new TableFailures();
  /** The unreadable definitions that are recorded, as JSON; null: not known. */
  unreadable: string | null = null;
  /** performance.now() of the last schema check. */
  schemaSeenAt = Number.NEGATIVE_INFINITY;
  /**
   * performance.now() of the last schema check that was compared with the replica's names: writes under moved names
   * are known up to then.
   */
  namesSeenAt = Number.NEGATIVE_INFINITY;
  /** The time of a requested schema check that has not run yet; and of the latest request for which one has. */
  schemaCheckRequestedAt: Date | null = null;
  schemaCheckMadeFor: Date | null = null;
  /** Ids of fields that records have and that a later schema check did not find. */
  unexplainedFields = new Set<string>();
  /** Ids of tables in which records have changed in the source since the last report. */
  changedTables = new Set<string>();
  /** By the source's table id. */
  tables = new Map<string, TableCache>();
  /** What the previous worker knew of the rows of tables that this one has not used yet, by table id. */
  handedOver = new Map<string, HandedOver>();
  /** Tables that a sync has rebuilt and that could not go live because queries held the old ones, by table id. */
  builds = new Map<string, FilledBuild>();
  /** Signs our own attachment URLs; undefined: the base has no key for them. */
  attachmentSigner: AttachmentSigner | undefined;
  /** Times with the read version at that time; the recent-writes log is trimmed to an old one. */
  trimPoints: { at: number; readVersion: number }[] = [];
  /** The point that the log was last trimmed to: after a rest, the only old one. */
  trimmedTo: { at: number; readVersion: number } | null = null;
  /** The source's clock, from the times of its answers. */
  sourceClock = new SourceClock();
  /** Rapid mode, by table id: up to when (ms, the source's clock) the table's changes are in the replica. */
  polledUntil = new Map<string, number>();
  /** Rapid mode, by table id: when the table was last polled (performance.now()). */
  pollStartedAt = new Map<string, number>();
  /** The current background scan of rapid or live mode. */
  scan: SweepScan | null = null;
  /** When the last scan began (performance.now()); -Infinity: the next is due at once. */
  scanStartedAt: number | null = null;
  /** Live mode: the changes that the feed has reported and that are not applied yet. */
  live: LiveCache | null = null;
  /** Number of syncs that failed in a row, and the error of the last one. */
  failures = 0;
  failedWith: RunReport["error"] | null = null;
  /** What keeps the base from being current. */
  problems = new Problems();
  /**
   * Why objects of the customer's refused the last rebuild of a table that must still be rebuilt, and when it is tried again
   * (performance.now()), by table id.
   */
  refusals = new Map<string, { error: BasetideError; until: number }>();
  /** How long the source must keep answering that there are no records before that is believed. */
  emptySpellMs: number;
  /**
   * How long fingerprints are trusted before a sweep compares every record with its row in SQL: that finds rows that were
   * changed in SQL directly. Sweeps are at most a day apart if the budget allows, and so are comparisons then.
   */
  compareEveryMs = TWICE_A_DAY_MS;

  constructor(epoch: number, emptySpellMs = EMPTY_SPELL_MS) {
    this.epoch = epoch;
    this.emptySpellMs = emptySpellMs;
  }
}

/**
 * Returns the cache that a new lease continues from. Knowledge of rows is valid only if the lease directly follows the
 * one that it comes from, in the same database. The number of failures stays known as long as no other worker has
 * synced the base.
 *
 * @param lease `previousEpoch`: of the lease before; `isContinued`: the replica still has everything that it had then;
 *   otherwise every table is swept at once
 */
export function restore(
  known: BaseCache | undefined,
  base: SyncedBase,
  { epoch, previousEpoch, isContinued }: { epoch: number; previousEpoch: number; isContinued: boolean },
): BaseCache {
  const isLast = isContinued && known?.epoch === previousEpoch && known.databaseId === base.database.id;
  const cache = isLast ? known : new BaseCache(epoch);
  if (!isContinued) cache.scanStartedAt = Number.NEGATIVE_INFINITY;
  cache.epoch = epoch;
  cache.renewals = 0;
  cache.databaseId = base.database.id;
  cache.problems.restore(base);
  const { selection = null } = base;
  if (!Bun.deepEquals(cache.selection, selection)) {
    cache.selection = selection;
    cache.schema = null;
    cache.packedSchema = null;
  }
  if (!isLast) {
    cache.failing.restore(base.failingTables ?? []);
    cache.schemaError = base.schemaError ?? null;
    if (base.error?.code === "replica_refused") {
      const outdated = base.problems.filter(({ kind }) => kind === "outdated_table");
      const error = new BasetideError(base.error.code, base.error.message);
      for (const { tableId } of outdated) cache.refusals.set(tableId!, { error, until: 0 });
    }
  }
  // The new lease has dropped them.
  cache.builds.clear();
  cache.failures = base.error ? Math.max(1, known?.failures ?? 0) : 0;
  cache.failedWith = base.error ? (known?.failedWith ?? null) : null;
  return cache;
}

/** Forgets the rows of these tables: they are compared with the source at once. */
export function forgetRows(cache: BaseCache, tableIds: readonly string[]): void {
  if (tableIds.length === 0) return;
  for (const id of tableIds) {
    cache.tables.delete(id);
    cache.handedOver.delete(id);
  }
  cache.scanStartedAt = Number.NEGATIVE_INFINITY;
}

/** Requests a schema check as of `at`. Repeating the same request has no effect. */
export function requestSchemaCheck(cache: BaseCache, at: Date | null): void {
  const latest = Math.max(
    cache.schemaCheckRequestedAt?.getTime() ?? 0,
    cache.schemaCheckMadeFor?.getTime() ?? 0,
  );
  if (at && at.getTime() > latest) cache.schemaCheckRequestedAt = at;
}

/** Returns the mapping from records to rows of a table with this spec. */
export function mappingOf(
  { attachmentSigner }: Pick<BaseCache, "attachmentSigner">,
  spec: TableSpec,
): Pick<TableCache, "map" | "hasLastingUrls"> {
  return {
    map: compileMapper(spec, attachmentSigner),
    hasLastingUrls: spec.columns.some(({ attachmentUrls }) => attachmentUrls !== undefined),
  };
}

/**
 * Returns the cache of the live table. Its fingerprints survive a schema change in place, which renames columns, but
 * keeps the rows. A rebuild creates its own cache.
 */
export function tableCache(cache: BaseCache, live: CatalogTable): TableCache {
  const known = cache.tables.get(live.spec.tableId);
  if (known?.live.shape === live.shape) {
    if (!known.isPacked) return known;
    return Object.assign(known, { live, ...mappingOf(cache, live.spec), isPacked: false });
  }
  const { fingerprints, isComplete, comparedAt, loggedUpTo } =
    known ?? handedOver(cache, live) ?? nothingKnown();
  const table: TableCache = {
    live,
    ...mappingOf(cache, live.spec),
    fingerprints,
    pages: [],
    isComplete,
    massChange: known?.massChange ?? new MassChange(),
    comparedAt,
    loggedUpTo,
  };
  cache.tables.set(live.spec.tableId, table);
  return table;
}

type RowKnowledge = Pick<TableCache, "fingerprints" | "isComplete" | "comparedAt" | "loggedUpTo">;

function nothingKnown(): RowKnowledge {
  return {
    fingerprints: new Fingerprints(),
    isComplete: false,
    comparedAt: Number.NEGATIVE_INFINITY,
    loggedUpTo: 0,
  };
}

/** Returns what the previous worker knew of the table's rows, once; undefined if the table has another shape since. */
function handedOver(cache: BaseCache, { spec, shape }: CatalogTable): RowKnowledge | undefined {
  const known = cache.handedOver.get(spec.tableId);
  cache.handedOver.delete(spec.tableId);
  if (known?.shape !== shape) return undefined;
  const fingerprints = Fingerprints.unpack(known.fingerprints);
  return fingerprints
    ? { fingerprints, isComplete: true, comparedAt: known.comparedAt, loggedUpTo: known.loggedUpTo }
    : undefined;
}
