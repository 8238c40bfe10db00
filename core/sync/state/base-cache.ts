/** What a worker remembers of a base from one sync to the next. Losing it costs comparisons in SQL, nothing else. */

import type { Base, RunReport } from "../../control/bases";
import type { AttachmentSigner, CatalogTable, RecordMapper, TableSpec } from "../../replica";
import { compileMapper } from "../../replica";
import type { SourceSchema } from "../../source";
import { SourceClock } from "../../source";
import type { FilledBuild } from "./filled-build";
import { Fingerprints } from "./fingerprints";
import type { LiveCache } from "./live-cache";
import { MassChange } from "./mass-change";

export interface TableCache {
  live: CatalogTable;
  map: RecordMapper;
  /** The URLs of its attachments are ours, which do not end: nothing has to be refreshed. */
  hasLastingUrls: boolean;
  fingerprints: Fingerprints;
  /** Do the fingerprints know every row of the replica? Not before a whole sweep. */
  isComplete: boolean;
  massChange: MassChange;
  /** When the last sweep began that compared every record with its row in SQL (performance.now()). */
  comparedAt: number;
  /** The recent-writes log has been read up to this stamp. */
  loggedUpTo: number;
}

/** A sweep that goes over the tables one by one, and may take many leases. */
export interface SweepScan {
  startedAt: Date;
  /** Ids of the tables that it has yet to read, in order. */
  remaining: string[];
  seen: number;
  inserted: number;
  updated: number;
  deleted: number;
  requests: number;
  waitMs: number;
}

export interface BaseCache {
  /** The lease that these memories are of: they hold only if nobody else had the base in between. */
  epoch: number;
  /** The database that they are of. */
  databaseId: string | null;
  schema: SourceSchema | null;
  /** performance.now() of the last look at the source's schema. */
  schemaSeenAt: number;
  /** The same of the last one that was compared with the replica's names: writes by names that had moved are known until then. */
  namesSeenAt: number;
  /** When somebody requested a look that has not been made yet; and the latest request that a look was made for. */
  schemaCheckRequestedAt: Date | null;
  schemaCheckMadeFor: Date | null;
  /** Ids of fields that records have and the source's schema, looked at afterwards, has not. */
  unexplainedFields: Set<string>;
  /** By the source's table id. */
  tables: Map<string, TableCache>;
  /** Tables that were rebuilt by a sync, and could not go live as queries held the old ones, by table id. */
  builds: Map<string, FilledBuild>;
  /** What signs attachment URLs of ours; undefined: the base has no key for them. */
  attachmentSigner: AttachmentSigner | undefined;
  /** Points in time with the read version of then; the recent-writes log is trimmed to an old one. */
  trimPoints: { at: number; readVersion: number }[];
  /** The point that it was trimmed to last: after a rest the only one that is old. */
  trimmedTo: { at: number; readVersion: number } | null;
  /** The source's clock, as its answers tell it. */
  sourceClock: SourceClock;
  /** Rapid mode, by table id: up to when (ms, the source's clock) the table's changes are in the replica. */
  polledUntil: Map<string, number>;
  /** Rapid mode, by table id: when the table was last asked for its changes (performance.now()). */
  pollStartedAt: Map<string, number>;
  /** The sweep beside rapid turns or live rounds that is under way. */
  scan: SweepScan | null;
  /** When the last one began (performance.now()); -Infinity: the next is due at once. */
  scanStartedAt: number | null;
  /** Live mode: what the feed told of and is still to be done. */
  live: LiveCache | null;
  /** Syncs that failed in a row, and what the last of them failed with. */
  failures: number;
  failedWith: RunReport["error"] | null;
  /** How long the source must go on saying that there is nothing before it is believed. */
  emptySpellMs: number;
  /** How long fingerprints are believed before a sweep compares every record with its row in SQL. */
  compareEveryMs: number;
}

/**
 * Half a day: sweeps are a day apart at most, where the budget allows, and so are comparisons then. They find what was
 * changed in SQL behind the worker's back.
 */
const COMPARE_EVERY_MS = 12 * 3600_000;

/** Longest that a source was seen to answer "no records" for a table that has them, and some. */
const EMPTY_SPELL_MS = 90_000;

export function emptyCache(epoch: number, emptySpellMs = EMPTY_SPELL_MS): BaseCache {
  return {
    epoch,
    databaseId: null,
    schema: null,
    schemaSeenAt: Number.NEGATIVE_INFINITY,
    namesSeenAt: Number.NEGATIVE_INFINITY,
    schemaCheckRequestedAt: null,
    schemaCheckMadeFor: null,
    unexplainedFields: new Set(),
    tables: new Map(),
    builds: new Map(),
    attachmentSigner: undefined,
    trimPoints: [],
    trimmedTo: null,
    sourceClock: new SourceClock(),
    polledUntil: new Map(),
    pollStartedAt: new Map(),
    scan: null,
    scanStartedAt: null,
    live: null,
    failures: 0,
    failedWith: null,
    emptySpellMs,
    compareEveryMs: COMPARE_EVERY_MS,
  };
}

/**
 * What a new lease goes on from. What is known of rows holds only if it follows directly on the lease that it is of, in
 * the same database; how often the base has failed is known here as long as nobody has synced it meanwhile.
 *
 * @param isContinued the replica has all that it had then: else every table is swept at once
 */
export function restore(
  known: BaseCache | undefined,
  base: Base,
  epoch: number,
  isContinued: boolean,
): BaseCache {
  const isLast = isContinued && known?.epoch === epoch - 1 && known.databaseId === base.database.id;
  const cache = isLast ? known : emptyCache(epoch);
  if (!isContinued) cache.scanStartedAt = Number.NEGATIVE_INFINITY;
  cache.epoch = epoch;
  cache.databaseId = base.database.id;
  // The new lease has dropped them.
  cache.builds.clear();
  cache.failures = base.error ? Math.max(1, known?.failures ?? 0) : 0;
  cache.failedWith = base.error ? (known?.failedWith ?? null) : null;
  return cache;
}

/** What is known of these tables' rows no longer holds: they are compared with the source at once. */
export function forgetRows(cache: BaseCache, tableIds: readonly string[]): void {
  if (tableIds.length === 0) return;
  for (const id of tableIds) cache.tables.delete(id);
  cache.scanStartedAt = Number.NEGATIVE_INFINITY;
}

/** Somebody wants the schema looked at, as of then. Asking for the same once more asks for nothing. */
export function requestSchemaCheck(cache: BaseCache, at: Date | null): void {
  const latest = Math.max(
    cache.schemaCheckRequestedAt?.getTime() ?? 0,
    cache.schemaCheckMadeFor?.getTime() ?? 0,
  );
  if (at && at.getTime() > latest) cache.schemaCheckRequestedAt = at;
}

/** How records become rows of a table of this shape. */
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
 * The memory of a table as it is live now. Its fingerprints outlive a change in place: that renames columns, but a
 * record still means the same row. A rebuild makes a memory of its own.
 */
export function tableCache(cache: BaseCache, live: CatalogTable): TableCache {
  const known = cache.tables.get(live.spec.tableId);
  if (known?.live.shape === live.shape) return known;
  const table: TableCache = {
    live,
    ...mappingOf(cache, live.spec),
    fingerprints: known?.fingerprints ?? new Fingerprints(),
    isComplete: known?.isComplete ?? false,
    massChange: known?.massChange ?? new MassChange(),
    comparedAt: known?.comparedAt ?? Number.NEGATIVE_INFINITY,
    loggedUpTo: known?.loggedUpTo ?? 0,
  };
  cache.tables.set(live.spec.tableId, table);
  return table;
}
