/**
 * A lease of a base: the time for which one worker holds it, and runs sync after sync.
 *
 * A lease has no length. It ends when the worker gives the base up, when people pause, move or delete it, when the base
 * must rest, or when another lease must look after the replica. About once a minute it is renewed, with one statement that
 * finds out whether the tables are as the lease left them; a base that rests in live mode is renewed by reads of its feed.
 *
 * No work waits for the end of a lease: heartbeats show that the holder is alive, and changes that people make are
 * noticed within a second or so, also in the middle of a sync (`LeasedBase`).
 *
 * I5. The lease starts by raising the replica's epoch. A previous holder can no longer write, however long it was
 * suspended. The queue makes overlapping leases rare; the epoch makes them harmless. No epoch is given out twice, even
 * if the replica loses commits (`claimLease`).
 */

import { linkedAbort, Notifier } from "../../async";
import type { Context } from "../../context";
import { asBasetideError, isBasetideError, nextStep } from "../../errors";
import type { CallCounter, RateLimiter } from "../../limiter";
import { agoMs } from "../../postgres";
import {
  dropUnfinished,
  ensureInstalled,
  isOtherTimeline,
  openReplica,
  type Replica,
  recordDamage,
  renewLease,
} from "../../replica";
import { type Platform, platformById } from "../../source";
import { failSpan, span } from "../../trace";
import { catchingUp, type NextSync, newReport, type SyncInput, syncBase, withdrawNext } from "../engine";
import type { Host, IndexSetting, RunReport, SyncedBase } from "../host";
import { rapidBase } from "../modes/rapid";
import {
  type BudgetWatch,
  failurePauseMs,
  isOutage,
  type LeasedBudget,
  MOST_PATIENCE_MS,
  OBSTACLE_MS,
  REST_MS,
  Scheduler,
  TURN_MS,
  type WorkKind,
} from "../pacing";
import { type BaseCache, forgetRows, requestSchemaCheck, restore, unpackCache } from "../state";
import { OptionalFeatureApplier } from "./apply-optional-features";
import { FindingsSaver } from "./findings-saver";
import { handOverRows, takeOverRows } from "./handover";
import { IndexKeeper } from "./index-keeper";
import { catchUpInput, inputOf } from "./lease-input";
import { claimLease } from "./lease-replica";
import { LeasedBase } from "./leased-base";
import { feedOf, goLive } from "./live-lease";
import type { SyncMetrics } from "./metrics";
import { hasLeft, saveRun } from "./save-run";
import { cadenceFor, isPaced, nextSweepAt, restOf } from "./sweep-cadence";
import { trimOldRecentWrites } from "./trim-recent-writes";

/** Optional features and indexes are applied again this often: it trims the history, and restores dropped objects. */
const UPKEEP_MS = 30 * 60_000;
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
  /** The base is on trial: the lease ends instead of being renewed. */
  isTrial?: boolean;
}

/**
 * Syncs the base until the worker stops or gives it up, or it no longer needs syncing. A base that fails while other
 * bases wait gives up its room in the worker.
 *
 * @returns when the base should be leased again, ms from now; null: not at all
 */
export async function holdLease(
  ctx: SyncContext,
  baseId: string,
  caches: BaseCaches,
  signals: LeaseSignals,
): Promise<number | null> {
  const { stop, kill, isSaturated = () => false, isTrial = false } = signals;
  const log = ctx.log.child({ baseId });
  const base = await ctx.host.base(baseId);
  if (!isToBeSynced(base)) return null;
  const target = await ctx.host.replicaTarget(base);
  // Another worker may have the base by now, and `kill` may have aborted.
  if (stop.aborted) return 0;
  const replica = openReplica(target);
  // It runs some twenty statements until its first sweep or rest, and a restarted worker starts many leases at once.
  replica.keep(REST_MS);
  // Statements have no limit: one that runs in a customer's trigger, for example, must not hold a lease that has to end.
  const killed = () => void replica.close();
  kill.addEventListener("abort", killed, { once: true });
  try {
    await ensureInstalled(replica, target);
    const start = await claimLease(ctx, baseId, replica, caches.get(baseId));
    const { epoch } = start;
    const emptied = await recordDamage(replica, epoch);
    if (emptied.length > 0)
      log.warn({ tableIds: emptied }, "rows may be missing; comparing these tables with Airtable");
    const cache = restore(caches.get(baseId), base, start);
    if (start.isContinued && cache.tables.size === 0)
      await takeOverRows({ replica, cache }, start.previousEpoch, log);
    forgetRows(cache, emptied);
    caches.set(baseId, cache);
    await using saver = new FindingsSaver(ctx.host, baseId, log);
    const onSchemaError = () => saver.note("schemaError", () => ({ schemaError: cache.schemaError }));
    cache.problems.onChange = () => saver.note("problems", () => ({ problems: cache.problems.list() }));
    cache.failing.onChange = () =>
      saver.note("failingTables", () => ({ failingTables: cache.failing.list() }));
    if (!Bun.deepEquals(cache.failing.list(), base.failingTables)) cache.failing.onChange();
    if (!Bun.deepEquals(cache.schemaError, base.schemaError)) onSchemaError();
    const platform = platformById(ctx.platforms, base.platform);
    using budget = await ctx.budgetWatch.hold(baseId);
    using leased = await LeasedBase.open({ ctx, base, platform, cache, stop, kill });
    const syncedFrom =
      base.sync && base.sync.kind !== "live" ? new Date(Date.now() - agoMs(base, base.sync.startedAt)) : null;
    const what = { baseId, platform, replica, epoch, cache, leased, budget };
    const onNames = (before: IndexSetting[], now: IndexSetting[]) =>
      ctx.host.save(baseId, { indexes: { before, now } });
    const features = new OptionalFeatureApplier(replica, epoch, log);
    const lease: Lease = {
      ctx: { ...ctx, log },
      ...what,
      saver,
      onSchemaError,
      features,
      indexes: new IndexKeeper(replica, epoch, onNames),
      wake: new Notifier(),
      renewAt: performance.now() + TURN_MS,
      keptUpAt: performance.now(),
      isUserKnown: base.sourceUserId !== null,
      syncedFrom,
      isSaturated,
      isTrial,
      hasFailed: false,
      isOverdue: false,
      next: {},
    };
    await features.apply(base.settings);
    await dropUnfinished(replica, epoch, cache.builds.keys());
    using over = linkedAbort(leased.stop);
    const catchUps = catchingUp(
      () => leased.catchUpRequestedAt,
      () => catchUpInput(lease, over.signal),
    );
    const upkeep = new Scheduler({ stop: over.signal, wake: lease.wake, tickMs: Infinity }, [
      catchUps,
      ...upkeepOf(lease),
    ]);
    leased.onFacts = () => lease.wake.notify();
    // Not awaited: an index may take long.
    void upkeep.run().catch(() => {});
    try {
      const againMs = await run(lease, base, stop).finally(() => withdrawNext(lease.next, replica, epoch));
      if (stop.aborted) await handOverRows(lease, log);
      else await upkeep.idle(catchUps);
      return againMs;
    } finally {
      over.abort();
    }
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
    kill.removeEventListener("abort", killed);
    await replica.close();
  }
}

interface Applier<T> {
  isApplied(wanted: T): boolean;
  apply(wanted: T): Promise<boolean>;
}

/** What a lease does besides syncing: settings to apply, indexes to create, the owner of the key to ask for. */
function upkeepOf(lease: Lease): WorkKind[] {
  const { ctx, baseId, cache, leased, features, indexes } = lease;
  const { problems } = cache;
  /** Since when each part could not be applied (performance.now()). */
  const unapplied = new Map<string, number>();
  const report = (part: string, isApplied: boolean): boolean => {
    const now = performance.now();
    if (isApplied) unapplied.delete(part);
    else unapplied.set(part, unapplied.get(part) ?? now);
    if (unapplied.size === 0) problems.settingsApplied();
    else if (now - Math.min(...unapplied.values()) > OBSTACLE_MS)
      problems.settingsWait("Queries or objects of yours hold what must change.");
    return isApplied;
  };
  const applied = (part: string, work: Promise<boolean>) =>
    work.then(
      (isApplied) => report(part, isApplied),
      (error: unknown) => {
        ctx.log.debug({ error }, `applying ${part} failed; retrying later`);
        return report(part, false);
      },
    );
  async function learnUser(): Promise<boolean> {
    const { apiKey } = leased;
    // Costs the base no quota.
    const { id } = await leased.connection.whoami(leased.kill);
    if (leased.apiKey !== apiKey) return false;
    await ctx.host.save(baseId, { sourceUserId: id });
    lease.isUserKnown = true;
    return true;
  }
  const kept = <T>(part: string, keeper: Applier<T>, wanted: () => T): WorkKind => ({
    most: 1,
    // Other settings are another item: they do not wait for those that could not be applied.
    items: () =>
      keeper.isApplied(wanted())
        ? []
        : [{ id: JSON.stringify(wanted()), run: () => applied(part, keeper.apply(wanted())) }],
  });
  return [
    kept("settings", features, () => leased.settings),
    kept("indexes", indexes, () => leased.settings.indexes),
    {
      most: 1,
      items: () => (lease.isUserKnown ? [] : [{ id: "", run: learnUser }]),
      onFailure: (_, error) => ctx.log.debug({ error }, "user of the API key could not be read"),
    },
  ];
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
  saver: FindingsSaver;
  /** Saves why the schema cannot be read. */
  onSchemaError: () => void;
  features: OptionalFeatureApplier;
  indexes: IndexKeeper;
  /** Notified when there may be something to do besides syncing. */
  wake: Notifier;
  /** When it must be renewed, and when optional features were last applied again (performance.now()). */
  renewAt: number;
  keptUpAt: number;
  isUserKnown: boolean;
  isSaturated: () => boolean;
  isTrial: boolean;
  /** True if a sync has failed, and none has completed since. */
  hasFailed: boolean;
  /** True if another lease must find out what is wrong with the replica. */
  isOverdue: boolean;
  /** What a sync has prepared for the one after it. */
  next: NextSync;
  /** When the last completed sync began; null after live mode, which starts no sync while nothing changes. */
  syncedFrom: Date | null;
}

/** Runs sync after sync. @returns as `holdLease` does */
async function run(lease: Lease, first: SyncedBase, stop: AbortSignal): Promise<number | null> {
  const { ctx, baseId, cache, leased } = lease;
  // By then, changes that people have made are known.
  const noticedAt = performance.now() + MOST_PATIENCE_MS;
  let saved: SyncedBase | undefined;
  for (let base = first; ; base = sweptBase(lease, base, saved) ?? (await ctx.host.base(baseId))) {
    saved = undefined;
    if (stop.aborted) return 0;
    if (!isToBeSynced(base)) return null;
    // Moved to another database, or paused and resumed within a second.
    if (base.database.id !== first.database.id || leased.isOver) return 0;
    // Another lease would have to read a table again that waits to go live.
    const isDue = lease.isOverdue || performance.now() >= lease.renewAt;
    if (isDue && cache.builds.size === 0 && !(await isRenewed(lease))) return 0;
    const startedAt = performance.now();
    const apiKey = leased.apiKey;
    try {
      const report = await span("sync", { "basetide.base_id": baseId }, () => syncAs(lease, base));
      if (report && "restMs" in report) {
        if (report.restMs > REST_MS && performance.now() > noticedAt)
          return await rested(lease, report.restMs);
        await leased.rest(Math.min(report.restMs, MOST_PATIENCE_MS));
        continue;
      }
      if (report) {
        // An error of a key that has been replaced meanwhile is obsolete, and reporting it would stop the base.
        if (needsAttention(report) && (await ctx.host.access(base)).apiKey !== apiKey) continue;
        saved = await saveRun(lease, base, report);
        if (needsAttention(report)) return null;
        if (report.error?.code === "budget_spent") return await rested(lease, SPENT_REST_MS);
      }
      if (report?.error || isGivenUp(lease)) {
        // What one table's objects refuse is no reason for other tables to wait longer.
        const isRefused = isBasetideError(cache.failedWith, "replica_refused");
        const pauseMs = failurePauseMs(isRefused ? 1 : cache.failures, cache.failedWith ?? undefined);
        if (isGivenUp(lease) || pauseMs > REST_MS) return pauseMs;
        await leased.rest(pauseMs);
      } else await leased.rest(Math.max(0, nextSweepAt(startedAt) - performance.now()));
    } catch (error) {
      // The worker stops, or a change needs another sync.
      if (!isBasetideError(error, "sync_stopped")) throw error;
    }
  }
}

/** Renews the lease, unless there is something for another one to do. */
async function isRenewed(lease: Lease): Promise<boolean> {
  const { replica, epoch, cache, features, indexes } = lease;
  if (lease.isOverdue || lease.isTrial || lease.isSaturated()) return false;
  if (!(await renewLease(replica, epoch, cache.renewals))) return false;
  cache.renewals += 1;
  const now = performance.now();
  lease.renewAt = now + TURN_MS;
  if (!features.isSettled || now - lease.keptUpAt >= UPKEEP_MS) {
    lease.keptUpAt = now;
    await dropUnfinished(replica, epoch, cache.builds.keys());
    features.changed();
    indexes.changed();
    lease.wake.notify();
  }
  return true;
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
 * Syncs once, or in rapid or live mode until the lease must be renewed.
 *
 * @returns the report; null if the mode has reported its syncs itself; if a sweep is not due yet, how long the budget
 *   lets the base rest
 */
async function syncAs(lease: Lease, base: SyncedBase): Promise<RunReport | { restMs: number } | null> {
  const { ctx, replica, platform, cache, leased, saver } = lease;
  const isForced = base.resyncRequestedAt !== null;
  unpackCache(cache);
  await applyAttachmentKey(ctx, base, cache);
  cache.problems.begin(base);
  const sizes = base.sync ? {} : await ctx.host.measuredSizes(base.id);
  const onLatest: SyncInput["onProgress"] = (progress) =>
    saver.note("progress", () => ({ progress, isFurther: cache.problems.advance(progress) }));
  using sync = leased.begin(base, isForced);
  const onProgress: SyncInput["onProgress"] = (latest) => {
    sync.isBuilding = true;
    onLatest(latest);
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
        onProgress: onLatest,
        cadence,
        modifiedSince: platform.modifiedSince,
        isGivenUp: () => isGivenUp(lease),
        // A cycle that the budget slows down may take longer, and starts over with each renewal.
        isOver: () => cycles > 0 && performance.now() >= lease.renewAt,
        onRun: async (report) => {
          if (!report.isBackground) cycles++;
          await saveRun(lease, base, report);
        },
        onRead: (at) => trimOldRecentWrites(replica, cache, at),
      });
      if (isDone) return null;
    }
    // The feed is opened before a first sync reads records, so that the sync finds all changes from before the feed began.
    const opening = feedOf(lease, base, input.reader);
    const isFirst = !base.sync && base.settings.live;
    let feed = isFirst ? null : await opening;
    if (feed) await withdrawNext(lease.next, replica, lease.epoch);
    // A read of the feed shows at once what another key is not allowed to do.
    leased.notify = () => feed?.notify();
    if (feed && base.sync && !isForced) {
      await goLive(lease, feed, {
        ...input,
        onProgress: onLatest,
        isGivenUp: () => isGivenUp(lease, feed),
        isOver: () => isLiveOver(lease),
        onRun: async (report) => void (await saveRun(lease, base, report)),
        onRead: (at) => trimOldRecentWrites(replica, cache, at),
      });
      return null;
    }
    const restMs = isForced || feed || isFirst ? 0 : restOf(lease.budget, base, cache);
    if (restMs > 0) await withdrawNext(lease.next, replica, lease.epoch);
    replica.release();
    if (restMs > 0) return { restMs };
    const startedAt = performance.now();
    // The sweep that closes a feed's gap must see all writes that were committed before it. No sweep begins while the
    // budget lets the base rest.
    const restsAfter = !feed && isPaced(lease.budget, base);
    const next = feed || isFirst || restsAfter ? undefined : lease.next;
    let openedAt = startedAt;
    const opened = opening.then((one) => {
      openedAt = performance.now();
      feed = one;
      return one;
    });
    // The sync reports its failure, unless it fails before.
    const settled = opened.catch(() => {});
    const report = await syncBase({ ...input, isForced, restsAfter, next, opening: opened }).finally(
      () => settled,
    );
    if (report.completedAt) {
      // The next poll of rapid mode goes back to this sync, and the next scan starts after it.
      cache.builds.clear();
      // Those that are left have changed their shape.
      cache.handedOver.clear();
      cache.polledUntil.clear();
      cache.scan = null;
      cache.scanStartedAt = startedAt;
      // Changes of a table that could not be read are still missing. One that SQL does not have will be read whole.
      const isLeft = report.failing?.some(
        ({ table_id: id }) => cache.failing.has(id) && cache.tables.has(id),
      );
      // The feed does not have what changed in the schema before it was opened.
      if (feed?.gapSince && cache.schemaSeenAt < openedAt) requestSchemaCheck(cache, feed.gapSince);
      if (!isLeft) await feed?.closeFeedGap(openedAt);
      await trimOldRecentWrites(replica, cache, startedAt, next?.prepared);
    }
    return report;
  } catch (caught) {
    const error = asBasetideError(caught);
    if (nextStep[error.code] === "stop") throw error;
    failSpan(error.code);
    return { ...newReport(), kind: base.settings.rapid ? "rapid" : "live", error };
  } finally {
    await saver.drop("progress");
  }
}

/** A renewal waits until a connection is open anyway: a base at rest is renewed by reads of its feed. */
function isLiveOver({ replica, isSaturated, isTrial, renewAt }: Lease): boolean {
  return performance.now() >= renewAt && (replica.isConnected() || isSaturated() || isTrial);
}

/** Applies regardless of the setting: tables that have not been rebuilt yet may contain our URLs. */
async function applyAttachmentKey(ctx: SyncContext, base: SyncedBase, cache: BaseCache): Promise<void> {
  if (base.attachmentKeyVersion === (cache.attachmentSigner?.keyVersion ?? 0)) return;
  cache.attachmentSigner = await ctx.host.attachmentSigner(base.id);
}

/** The base is leased again after it has rested, which is stored with it. @throws BasetideError `sync_stopped` */
async function rested({ ctx, baseId, budget, leased }: Lease, restMs: number): Promise<null> {
  // What a client wrote does not wait for the budget.
  while (leased.catchUpRequestedAt) await leased.rest(MOST_PATIENCE_MS);
  const spentMs = budget.spentUntil ? budget.spentUntil.getTime() - Date.now() : Infinity;
  // This process's clock may be ahead of that by which the month ends.
  await ctx.host.restUntil(baseId, Math.min(restMs, Math.max(REST_MS, spentMs)));
  return null;
}

/** Returns whether the base should make room for others. */
function isGivenUp(
  { hasFailed, isSaturated }: Lease,
  feed?: { readonly isFailing: boolean } | null,
): boolean {
  return (hasFailed || feed?.isFailing === true) && isSaturated();
}

function needsAttention({ error }: RunReport): boolean {
  return error !== undefined && nextStep[error.code] === "needs_attention";
}

function isToBeSynced(base: SyncedBase): boolean {
  return base.state !== "paused" && base.state !== "moving" && base.state !== "deleting";
}
