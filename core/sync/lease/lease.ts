/**
 * A lease of a base: one worker runs sync after sync, for about a minute.
 *
 * The lease ends with the first sync that ends after that minute. A long sweep, or in rapid mode a table that takes
 * long, extends it. A lease that has only swept is renewed instead, with one statement, for up to half an hour: what costs
 * most when bases are swept all the time is to begin leases. An idle live base keeps its lease until its replica is
 * written to. The next lease takes over the connection, so it needs no login.
 *
 * No work waits for the end of a lease: heartbeats show that the holder is alive, and changes that people make are
 * noticed within a second or so, also in the middle of a sync (`LeasedBase`).
 *
 * I5. The lease starts by raising the replica's epoch. A previous holder can no longer write, however long it was
 * suspended. The queue makes overlapping leases rare; the epoch makes them harmless. No epoch is given out twice, even
 * if the replica loses commits (`claimLease`).
 */

import type { Context } from "../../context";
import { asBasetideError, isBasetideError, nextStep } from "../../errors";
import type { CallCounter, RateLimiter } from "../../limiter";
import { agoMs } from "../../postgres";
import {
  dropUnfinished,
  ensureInstalled,
  isOtherTimeline,
  type Replica,
  recordDamage,
  renewLease,
} from "../../replica";
import { type Platform, platformById } from "../../source";
import { failSpan, span } from "../../trace";
import { CatchUps, type NextSync, newReport, type SyncInput, syncBase, withdrawNext } from "../engine";
import type { Host, IndexSetting, RunReport, SyncedBase } from "../host";
import { rapidBase } from "../modes/rapid";
import { type BudgetWatch, failurePauseMs, isOutage, type LeasedBudget } from "../pacing";
import { type BaseCache, forgetRows, restore, unpackCache } from "../state";
import { OptionalFeatureApplier } from "./apply-optional-features";
import { ChangeSaver } from "./change-saver";
import { handOverRows, takeOverRows } from "./handover";
import { IndexKeeper } from "./index-keeper";
import { catchUpInput, inputOf } from "./lease-input";
import { claimLease, leaveReplica, takeReplica } from "./lease-replica";
import { LeasedBase } from "./leased-base";
import { feedOf, goLive } from "./live-lease";
import type { SyncMetrics } from "./metrics";
import { progressSaver } from "./progress-saver";
import { hasLeft, saveRun } from "./save-run";
import { cadenceFor, isPaced, nextSweepAt, restOf } from "./sweep-cadence";
import { trimOldRecentWrites } from "./trim-recent-writes";

const LEASE_MS = 60_000;
/**
 * The longest renewed lease. The next one applies optional features and indexes again, which also trims the history, and
 * restores views and indexes that somebody has dropped.
 */
const LONGEST_RENEWED_MS = 1_800_000;
/**
 * The longest lease of an idle live base. By then, it has logged in to be compared and to trim its recent-writes log;
 * another lease begins on that connection. Each lease of a base at rest costs as much CPU as ten reads of its feed.
 */
const LONGEST_LEASE_MS = 6 * 3600_000;
/**
 * A lease that starts keeps its connection to the replica until its first sweep or rest, for at most this long. It runs some
 * twenty statements, and a restarted worker starts many leases at once.
 */
const STARTING_MS = 10_000;
/** A base whose next sweep is further off is released, so that it takes no room in the worker until then. */
const LONGEST_REST_MS = 20_000;
/** In rapid mode a lease waits for the first cycle to end, for as long as this many cycles usually take. */
const CYCLES_WAITED = 2;
/** By this time after the start of a lease, changes that people have made are known. */
const NOTICE_MS = 1500;
/** Settings that cannot be applied for this long are reported. */
const UNAPPLIED_MS = 30_000;
/** How often a base with a spent budget checks whether the budget is still spent. */
const SPENT_REST_MS = 3600_000;

export interface SyncContext extends Pick<Context, "config" | "log"> {
  host: Host;
  limiter: RateLimiter;
  platforms: Platform[];
  syncMetrics: SyncMetrics;
  budgetWatch: BudgetWatch;
  callCounter: CallCounter;
}

/** The caches that a worker keeps between leases, by base id. */
export type BaseCaches = Map<string, BaseCache>;

export interface LeaseSignals {
  /** Aborts when the worker stops: the current page is finished. */
  stop: AbortSignal;
  /** Aborts when the worker can wait no longer. */
  kill: AbortSignal;
  /** True if other bases wait and the worker has no room for them. */
  isSaturated?: () => boolean;
}

/**
 * Syncs the base until the lease has run out, the worker stops, or the base no longer needs syncing. A base that fails
 * while other bases wait gives up its room in the worker.
 *
 * @returns when the base should be leased again, ms from now; null: not at all
 */
export async function holdLease(
  ctx: SyncContext,
  baseId: string,
  caches: BaseCaches,
  signals: LeaseSignals,
): Promise<number | null> {
  const { stop, kill, isSaturated = () => false } = signals;
  const log = ctx.log.child({ baseId });
  const base = await ctx.host.base(baseId);
  if (!isToBeSynced(base)) return null;
  const target = await ctx.host.replicaTarget(base);
  const replica = takeReplica(caches.get(baseId), target);
  let isLeftOpen = false;
  replica.keep(STARTING_MS);
  try {
    await ensureInstalled(replica, target);
    const start = await claimLease(ctx, baseId, replica, caches.get(baseId));
    const { epoch } = start;
    const emptied = await recordDamage(replica, epoch);
    if (emptied.length > 0)
      log.warn({ tableIds: emptied }, "rows may be missing; comparing these tables with Airtable");
    const cache = restore(caches.get(baseId), base, start);
    if (start.isContinued && cache.tables.size === 0)
      await takeOverRows({ replica, cache }, start.previousEpoch);
    forgetRows(cache, emptied);
    caches.set(baseId, cache);
    await using problems = new ChangeSaver(log, () =>
      ctx.host.save(baseId, { problems: cache.problems.list() }),
    );
    await using failing = new ChangeSaver(log, () =>
      ctx.host.save(baseId, { failingTables: cache.failing.list() }),
    );
    await using schemaError = new ChangeSaver(log, () =>
      ctx.host.save(baseId, { schemaError: cache.schemaError }),
    );
    cache.problems.onChange = problems.changed;
    cache.failing.onChange = failing.changed;
    if (!Bun.deepEquals(cache.failing.list(), base.failingTables)) failing.changed();
    if (!Bun.deepEquals(cache.schemaError, base.schemaError)) schemaError.changed();
    const platform = platformById(ctx.platforms, base.platform);
    using budget = await ctx.budgetWatch.hold(baseId);
    using leased = await LeasedBase.open({
      ctx,
      base,
      platform,
      cache,
      stop,
      kill,
    });
    const syncedFrom =
      base.sync && base.sync.kind !== "live" ? new Date(Date.now() - agoMs(base, base.sync.startedAt)) : null;
    const what = { baseId, platform, replica, epoch, cache, leased, budget };
    const onNames = (before: IndexSetting[], now: IndexSetting[]) =>
      ctx.host.save(baseId, { indexes: { before, now } });
    const lease = {
      ctx: { ...ctx, log },
      ...what,
      onSchemaError: schemaError.changed,
      features: new OptionalFeatureApplier(replica, epoch, log),
      indexes: new IndexKeeper(replica, epoch, log, onNames),
      startedAt: performance.now(),
      hasOnlySwept: true,
      syncedFrom,
      isSaturated,
      hasFailed: false,
      isOverdue: false,
      next: {},
    };
    await applyOptionalFeatures(lease, base);
    if (base.sourceUserId === null) void learnUser(lease);
    await using catchUps = new CatchUps(() => catchUpInput(lease), leased.stop);
    leased.onCatchUp = (at) => catchUps.request(at);
    catchUps.request(base.catchUpRequestedAt);
    const next = await syncUntilOver(lease, base, stop).finally(() =>
      withdrawNext(lease.next, replica, epoch),
    );
    if (stop.aborted) await handOverRows(lease, log);
    isLeftOpen = next === 0 && !stop.aborted && !leased.isOver && !lease.indexes.isWorking;
    if (isLeftOpen) leaveReplica(cache, target, replica);
    return next;
  } catch (error) {
    // After an outage of a database, the cache of the replica is still valid, unless another worker had the base
    // meanwhile (`restore` checks that).
    if (!isOutage(error)) caches.delete(baseId);
    if (await hasLeft(ctx, base)) return null;
    if (!isBasetideError(error, "lease_lost")) throw error;
    log.warn({ error }, "lease lost");
    // After a failover no other worker holds the base: the next lease compares everything.
    return isOtherTimeline(error) ? 0 : null;
  } finally {
    if (!isLeftOpen) await replica.close();
  }
}

/** Applies the optional features in the base's settings to the replica, now and whenever they change. */
async function applyOptionalFeatures(
  { ctx, replica, epoch, cache, leased, features, indexes }: Lease,
  base: SyncedBase,
): Promise<void> {
  await features.apply(base.settings);
  await dropUnfinished(replica, epoch, cache.builds.keys());
  indexes.apply(base.settings.indexes);
  let unappliedAt: number | undefined;
  leased.applySettingsBy((settings) => {
    indexes.apply(settings.indexes);
    features
      .apply(settings)
      .catch((error: unknown) => ctx.log.debug({ error }, "applying settings failed; retrying later"));
    const isApplied = indexes.isApplied(settings.indexes) && features.isApplied(settings);
    // An index on a large table takes its time.
    unappliedAt = isApplied || indexes.isWorking ? undefined : (unappliedAt ?? performance.now());
    if (isApplied) cache.problems.settingsApplied();
    else if (unappliedAt !== undefined && performance.now() - unappliedAt > UNAPPLIED_MS)
      cache.problems.settingsWait("Queries or objects of yours hold what must change.");
    return isApplied;
  });
}

export interface Lease {
  ctx: SyncContext;
  baseId: string;
  platform: Platform;
  replica: Replica;
  epoch: number;
  cache: BaseCache;
  leased: LeasedBase;
  budget: LeasedBudget;
  /** Saves why the schema cannot be read. */
  onSchemaError: () => void;
  features: OptionalFeatureApplier;
  indexes: IndexKeeper;
  /** performance.now() */
  startedAt: number;
  /** True while every sync of the lease was a completed sweep, and no table has changed its shape. */
  hasOnlySwept: boolean;
  isSaturated: () => boolean;
  /** True if a sync has failed, and none has completed since. */
  hasFailed: boolean;
  /** True if another lease must find out what is wrong with the replica. */
  isOverdue: boolean;
  /** What a sync has prepared for the one after it. */
  next: NextSync;
  /** When the last completed sync began; null after live mode, which starts no sync while nothing changes. */
  syncedFrom: Date | null;
}

async function syncUntilOver(lease: Lease, first: SyncedBase, stop: AbortSignal): Promise<number | null> {
  const { ctx, baseId, cache, leased } = lease;
  let until = performance.now() + LEASE_MS;
  const noticedAt = performance.now() + NOTICE_MS;
  let saved: SyncedBase | undefined;
  for (let base = first; ; base = sweptBase(lease, base, saved) ?? (await ctx.host.base(baseId))) {
    saved = undefined;
    if (stop.aborted) return 0;
    if (!isToBeSynced(base)) return null;
    // The base was moved to another database, or paused and resumed within a second: another lease continues.
    if (base.database.id !== first.database.id || leased.isOver) return 0;
    // The next lease would have to read a table again that waits to go live.
    if ((lease.isOverdue || performance.now() >= until) && cache.builds.size === 0) {
      if (!(await isRenewed(lease))) return 0;
      until = performance.now() + LEASE_MS;
    }
    const startedAt = performance.now();
    const apiKey = leased.apiKey;
    try {
      const report = await span("sync", { "basetide.base_id": baseId }, () => syncAs(lease, base, until));
      if (!isPlainSweep(base, report)) lease.hasOnlySwept = false;
      if (report && "restMs" in report) {
        if (report.restMs > LONGEST_REST_MS && performance.now() > noticedAt)
          return await release(lease, report.restMs);
        await leased.rest(Math.min(report.restMs, NOTICE_MS));
        continue;
      }
      if (report) {
        // An error of a key that has been replaced meanwhile is obsolete, and reporting it would stop the base.
        if (needsAttention(report) && (await ctx.host.access(base)).apiKey !== apiKey) continue;
        saved = await saveRun(lease, base, report);
        if (needsAttention(report)) return null;
        if (report.error?.code === "budget_spent") return await release(lease, SPENT_REST_MS);
      }
      if (report?.error || isGivenUp(lease)) {
        // What one table's objects refuse is no reason for other tables to wait longer.
        const isRefused = isBasetideError(cache.failedWith, "replica_refused");
        const pauseMs = failurePauseMs(isRefused ? 1 : cache.failures, cache.failedWith ?? undefined);
        if (isGivenUp(lease) || pauseMs > LONGEST_REST_MS) return pauseMs;
        await leased.rest(pauseMs);
      } else await leased.rest(Math.max(0, nextSweepAt(startedAt) - performance.now()));
    } catch (error) {
      lease.hasOnlySwept = false;
      // The worker stops, or a change needs another sync.
      if (!isBasetideError(error, "sync_stopped")) throw error;
    }
  }
}

/** Renews the lease, unless there is something for another one to do. */
async function isRenewed({ replica, epoch, cache, features, ...lease }: Lease): Promise<boolean> {
  const isPlain = lease.hasOnlySwept && !lease.isOverdue && features.isSettled;
  const isShort = performance.now() - lease.startedAt < LONGEST_RENEWED_MS;
  if (!isPlain || !isShort || lease.isSaturated()) return false;
  const isDone = await renewLease(replica, epoch, cache.renewals);
  if (isDone) cache.renewals += 1;
  return isDone;
}

/** Returns whether the sync has compared all tables in place, so that it leaves nothing half done. */
function isPlainSweep(base: SyncedBase, report: RunReport | { restMs: number } | null): boolean {
  if (report === null || base.resyncRequestedAt !== null) return false;
  return "restMs" in report || (report.kind === "sweep" && report.completedAt !== null && !report.failing);
}

/** Returns the base after this sync, unless it must be read again: a sweep is usually all that has changed it. */
function sweptBase(
  { leased }: Lease,
  base: SyncedBase,
  saved: SyncedBase | undefined,
): SyncedBase | undefined {
  const isPlain = !base.settings.live && base.resyncRequestedAt === null && base.error === null;
  return isPlain && leased.isAsRead(base) ? saved : undefined;
}

/**
 * Syncs once, or in rapid or live mode until the lease is over.
 *
 * @returns the report; null if the mode has reported its syncs itself; if a sweep is not due yet, how long the budget
 *   lets the base rest
 */
async function syncAs(
  lease: Lease,
  base: SyncedBase,
  until: number,
): Promise<RunReport | { restMs: number } | null> {
  const { ctx, replica, platform, cache, leased } = lease;
  const isForced = base.resyncRequestedAt !== null;
  unpackCache(cache);
  await applyAttachmentKey(ctx, base, cache);
  cache.problems.begin(base);
  const sizes = base.sync ? {} : await ctx.host.measuredSizes(base.id);
  const progress = progressSaver(ctx, base.id, cache.problems);
  using sync = leased.begin(base, isForced);
  const onProgress: SyncInput["onProgress"] = (latest) => {
    sync.isBuilding = true;
    progress.note(latest);
  };
  const input = { ...inputOf(lease, base, sync.stop, onProgress), sizes };
  try {
    if (base.settings.rapid && base.sync && !isForced && platform.modifiedSince) {
      await withdrawNext(lease.next, replica, lease.epoch);
      replica.release();
      const cadence = () => cadenceFor(lease.budget, base, "rapid");
      let cycles = 0;
      const isDone = await rapidBase({
        ...input,
        // A background rebuild is of one table, which another sync can start over: it does not count as building.
        onProgress: progress.note,
        cadence,
        modifiedSince: platform.modifiedSince,
        isGivenUp: () => isGivenUp(lease),
        // A cycle that the budget slows down may take longer than a lease, and starts over with each lease.
        isOver: () => performance.now() >= (cycles > 0 ? until : until + CYCLES_WAITED * cadence().cycleMs),
        onRun: async (report) => {
          if (!report.isBackground) cycles++;
          await saveRun(lease, base, report);
        },
        onRead: (at) => trimOldRecentWrites(replica, cache, at),
      });
      if (isDone) return null;
    }
    // The feed is opened before a first sync, so that the sync finds all changes from before the feed began.
    const feed = await feedOf(lease, base, input.reader);
    if (feed) await withdrawNext(lease.next, replica, lease.epoch);
    // A read of the feed shows at once what another key is not allowed to do.
    leased.notify = () => feed?.notify();
    if (feed && base.sync && !isForced) {
      await goLive(lease, feed, {
        ...input,
        onProgress: progress.note,
        isGivenUp: () => isGivenUp(lease),
        isOver: () => isLiveOver(lease, until),
        onRun: async (report) => void (await saveRun(lease, base, report)),
        onRead: (at) => trimOldRecentWrites(replica, cache, at),
      });
      return null;
    }
    const restMs = isForced || feed ? 0 : restOf(lease.budget, base, cache);
    if (restMs > 0) await withdrawNext(lease.next, replica, lease.epoch);
    replica.release();
    if (restMs > 0) return { restMs };
    const startedAt = performance.now();
    // The sweep that closes a feed's gap must see all writes that were committed before it. No sweep begins while the
    // budget lets the base rest.
    const restsAfter = !feed && isPaced(lease.budget, base);
    const next = feed || restsAfter ? undefined : lease.next;
    const report = await syncBase({ ...input, isForced, restsAfter, next });
    if (report.completedAt) {
      // The next poll of rapid mode goes back to this sync, and the next scan starts after it.
      cache.builds.clear();
      // Those that are left have changed their shape.
      cache.handedOver.clear();
      cache.polledUntil.clear();
      cache.scan = null;
      cache.partialScan = null;
      cache.scanStartedAt = startedAt;
      // Changes of a table that could not be read are still missing. One that SQL does not have will be read whole.
      const isLeft = report.failing?.some(({ table_id }) => cache.tables.has(table_id));
      if (!isLeft) await feed?.closeFeedGap(startedAt);
      await trimOldRecentWrites(replica, cache, startedAt, next?.prepared);
    }
    return report;
  } catch (caught) {
    const error = asBasetideError(caught);
    if (nextStep[error.code] === "stop") throw error;
    failSpan(error.code);
    return { ...newReport(), kind: base.settings.rapid ? "rapid" : "live", error };
  } finally {
    await progress.end();
  }
}

/** A new lease reads and writes the replica: the end of this one waits until a connection is open anyway. */
function isLiveOver({ replica, isSaturated }: Lease, until: number): boolean {
  const now = performance.now();
  if (now < until) return false;
  return replica.isConnected() || isSaturated() || now >= until + LONGEST_LEASE_MS;
}

/** Applies regardless of the setting: tables that have not been rebuilt yet may contain our URLs. */
async function applyAttachmentKey(ctx: SyncContext, base: SyncedBase, cache: BaseCache): Promise<void> {
  if (base.attachmentKeyVersion === (cache.attachmentSigner?.keyVersion ?? 0)) return;
  cache.attachmentSigner = await ctx.host.attachmentSigner(base.id);
}

/** Asks for the owner of the key, which costs the base no quota. If it fails, another lease tries again. */
async function learnUser({ ctx, baseId, leased }: Lease): Promise<void> {
  const { apiKey } = leased;
  try {
    const { id } = await leased.connection.whoami(leased.kill);
    if (leased.apiKey === apiKey) await ctx.host.save(baseId, { sourceUserId: id });
  } catch (error) {
    ctx.log.debug({ error }, "user of the API key could not be read");
  }
}

/** Ends the lease; the base is leased again after it has rested. */
async function release({ ctx, baseId, budget }: Lease, restMs: number): Promise<null> {
  const spentMs = budget.spentUntil ? budget.spentUntil.getTime() - Date.now() : Infinity;
  await ctx.host.restUntil(baseId, Math.min(restMs, spentMs));
  return null;
}

/** Returns whether the base should make room for others. */
function isGivenUp({ hasFailed, isSaturated }: Lease): boolean {
  return hasFailed && isSaturated();
}

function needsAttention({ error }: RunReport): boolean {
  return error !== undefined && nextStep[error.code] === "needs_attention";
}

function isToBeSynced(base: SyncedBase): boolean {
  return base.state !== "paused" && base.state !== "moving" && base.state !== "deleting";
}
