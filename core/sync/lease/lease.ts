/**
 * A lease of a base: sync after sync, for about a minute, by one worker.
 *
 * It ends with the first sync that ends after that minute: a long sweep, or in rapid mode a table that takes long,
 * keeps it for as long as it takes. A live base at rest keeps it until its replica is written to, and the next lease takes
 * over the connection: renewing leases costs no login. Nothing waits for its end: heartbeats tell that the holder lives, and what people
 * change is seen within a second or so, also in the middle of a sync (`LeasedBase`).
 *
 * I5. The lease begins by raising the replica's epoch; whoever held the base before can write no more, however long
 * it was frozen. The queue makes overlapping leases rare; the epoch makes them harmless.
 */

import type { Context } from "../../context";
import {
  attachmentSigner,
  type Base,
  getBase,
  openApiKey,
  type RunReport,
  recordRun,
  recordSourceUser,
  renameIndexes,
  replicaTarget,
  restUntil,
  syncFacts,
} from "../../control/bases";
import { quotaKeyOf } from "../../control/budgets";
import { asBasetideError, isBasetideError, nextStep } from "../../errors";
import type { CallCounter, RateLimiter } from "../../limiter";
import { agoMs } from "../../postgres";
import {
  claimEpoch,
  dropUnfinished,
  ensureInstalled,
  isOtherTimeline,
  type Replica,
  recordDamage,
} from "../../replica";
import type { Platform } from "../../source";
import { platformById } from "../../source";
import { failSpan, span } from "../../trace";
import { CatchUps, newReport, syncBase } from "../engine";
import type { NotificationListener } from "../modes/live";
import { rapidBase } from "../modes/rapid";
import type { BudgetWatch, LeasedBudget } from "../pacing";
import { failurePauseMs, isOutage } from "../pacing";
import { type BaseCache, forgetRows, restore } from "../state";
import { OptionalFeatureApplier } from "./apply-optional-features";
import { IndexKeeper } from "./index-keeper";
import { catchUpInput, inputOf } from "./lease-input";
import { leaveReplica, takeReplica } from "./lease-replica";
import { LeasedBase } from "./leased-base";
import { feedOf, goLive } from "./live-lease";
import { logRun } from "./log-run";
import type { SyncMetrics } from "./metrics";
import { progressSaver } from "./progress-saver";
import { isContinued } from "./replica-state";
import type { SettingsWatch } from "./settings-watch";
import { cadenceFor, MIN_SYNC_INTERVAL_MS, restOf } from "./sweep-cadence";
import { trimOldRecentWrites } from "./trim-recent-writes";

const LEASE_MS = 60_000;
/** A live base that is at rest for longer logs in to begin another lease. */
const LONGEST_LEASE_MS = 3600_000;
/** A base whose next sweep is further off is given back, so that it takes no room in the worker meanwhile. */
const LONGEST_REST_MS = 20_000;
/** In rapid mode a lease waits for the first turn to end: for as long as so many usually take. */
const CYCLES_WAITED = 2;
/** What people have asked for is known after this. */
const NOTICE_MS = 1500;
/** How often a base whose budget is spent looks whether it still is. */
const SPENT_REST_MS = 3600_000;

export interface SyncContext extends Context {
  limiter: RateLimiter;
  platforms: Platform[];
  syncMetrics: SyncMetrics;
  settingsWatch: SettingsWatch;
  notifications: NotificationListener;
  budgetWatch: BudgetWatch;
  callCounter: CallCounter;
}

/** What a worker keeps between leases, by base id. */
export type BaseCaches = Map<string, BaseCache>;

export interface LeaseSignals {
  /** Aborts when the worker is to stop: the page in hand is finished. */
  stop: AbortSignal;
  /** Aborts when it cannot wait any longer. */
  kill: AbortSignal;
  /** Do others wait, and the worker has no room for them? */
  isSaturated?: () => boolean;
}

/**
 * Syncs the base until the lease has run out, the worker stops, or there is nothing to sync any more; one that fails
 * while others wait gives its place to them.
 *
 * @returns when the base is to be leased again, ms from now; null: not any more
 */
export async function holdLease(
  ctx: SyncContext,
  baseId: string,
  caches: BaseCaches,
  signals: LeaseSignals,
): Promise<number | null> {
  const { stop, kill, isSaturated = () => false } = signals;
  const log = ctx.log.child({ baseId });
  const base = await getBase(ctx.db, baseId);
  if (!isToBeSynced(base)) return null;
  const target = await replicaTarget(ctx, base);
  const replica = takeReplica(caches.get(baseId), target);
  let isLeftOpen = false;
  try {
    await ensureInstalled(replica, target);
    const epoch = await claimEpoch(replica);
    const [isSame, emptied] = await Promise.all([
      isContinued(ctx, baseId, replica, epoch),
      recordDamage(replica, epoch),
    ]);
    if (emptied.length > 0) log.warn({ tableIds: emptied }, "rows may be gone: these tables are compared");
    const cache = restore(caches.get(baseId), base, epoch, isSame);
    forgetRows(cache, emptied);
    caches.set(baseId, cache);
    const platform = platformById(ctx.platforms, base.platform);
    using budget = await ctx.budgetWatch.hold(baseId);
    using leased = await LeasedBase.open({
      ctx,
      base,
      platform,
      cache,
      watch: ctx.settingsWatch,
      stop,
      kill,
    });
    const syncedFrom =
      base.sync && base.sync.kind !== "live" ? new Date(Date.now() - agoMs(base, base.sync.startedAt)) : null;
    const what = { baseId, platform, replica, epoch, cache, leased, budget };
    const indexes = new IndexKeeper(replica, epoch, log, (before, now) =>
      renameIndexes(ctx.db, baseId, before, now),
    );
    const lease = { ctx: { ...ctx, log }, ...what, indexes, syncedFrom, isSaturated, hasFailed: false };
    await applyOptionalFeatures(lease, base);
    if (base.sourceUserId === null) void learnUser(lease);
    await using catchUps = new CatchUps(() => catchUpInput(lease), leased.stop);
    leased.onCatchUp = (at) => catchUps.request(at);
    catchUps.request(base.catchUpRequestedAt);
    const next = await syncUntil(lease, performance.now() + LEASE_MS, base, stop);
    isLeftOpen = next === 0 && !stop.aborted && !leased.isOver && !indexes.isWorking;
    if (isLeftOpen) leaveReplica(cache, target, replica);
    return next;
  } catch (error) {
    // What is known of the replica is still so when a database was away, unless somebody else had the base meanwhile.
    if (!isOutage(error)) caches.delete(baseId);
    if (await hasLeft(ctx, base)) return null;
    if (!isBasetideError(error, "lease_lost")) throw error;
    log.warn({ error }, "lease lost");
    // No other worker has it: the next lease compares everything.
    return isOtherTimeline(error) ? 0 : null;
  } finally {
    if (!isLeftOpen) await replica.close();
  }
}

/** From here on the replica has, besides its rows, what the base's settings say, also where they change meanwhile. */
async function applyOptionalFeatures(
  { ctx, replica, epoch, cache, leased, indexes }: Lease,
  base: Base,
): Promise<void> {
  const optionalFeatures = new OptionalFeatureApplier(replica, epoch, ctx.log);
  await optionalFeatures.apply(base.settings);
  await dropUnfinished(replica, epoch, cache.builds.keys());
  indexes.apply(base.settings.indexes);
  leased.onSettings = (settings) => {
    indexes.apply(settings.indexes);
    optionalFeatures
      .apply(settings)
      .catch((error: unknown) => ctx.log.debug({ error }, "settings not followed yet"));
  };
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
  indexes: IndexKeeper;
  isSaturated: () => boolean;
  /** Has it failed, and not completed a sync since? */
  hasFailed: boolean;
  /** When the last sync began that completed; null after live mode, which begins none while nothing changes. */
  syncedFrom: Date | null;
}

async function syncUntil(
  lease: Lease,
  until: number,
  first: Base,
  stop: AbortSignal,
): Promise<number | null> {
  const { ctx, baseId, cache, leased } = lease;
  const noticedAt = performance.now() + NOTICE_MS;
  for (let base = first; ; base = await getBase(ctx.db, baseId)) {
    if (stop.aborted) return 0;
    if (!isToBeSynced(base)) return null;
    // Moved to another database, or paused and resumed within a second, say: another lease goes on.
    if (base.database.id !== first.database.id || leased.isOver) return 0;
    // A table that waits to go live would be read once more by the next lease.
    if (performance.now() >= until && cache.builds.size === 0) return 0;
    const startedAt = performance.now();
    const apiKey = leased.apiKey;
    try {
      const report = await span("sync", { "basetide.base_id": baseId }, () => syncAs(lease, base, until));
      if (report && "restMs" in report) {
        if (report.restMs > LONGEST_REST_MS && performance.now() > noticedAt)
          return await release(lease, report.restMs);
        await leased.rest(Math.min(report.restMs, NOTICE_MS));
        continue;
      }
      if (report) {
        // What a key that has been replaced meanwhile may not do is no news, and would stop the base.
        if (needsAttention(report) && (await openApiKey(ctx, base)) !== apiKey) continue;
        await saveRun(lease, base, report);
        if (needsAttention(report)) return null;
        if (report.error?.code === "budget_spent") return await release(lease, SPENT_REST_MS);
      }
      if (report?.error || isGivenUp(lease)) {
        const pauseMs = failurePauseMs(cache.failures, cache.failedWith ?? undefined);
        if (isGivenUp(lease) || pauseMs > LONGEST_REST_MS) return pauseMs;
        await leased.rest(pauseMs);
      } else await leased.rest(Math.max(0, MIN_SYNC_INTERVAL_MS - (performance.now() - startedAt)));
    } catch (error) {
      // The worker stops, or somebody changed what only another sync can do.
      if (!isBasetideError(error, "sync_stopped")) throw error;
    }
  }
}

/**
 * Syncs once, or in rapid or live mode until the lease is over.
 *
 * @returns the report; null where those modes have told of their syncs themselves; how long the budget lets the base rest,
 *   where a sweep is not due yet
 */
async function syncAs(
  lease: Lease,
  base: Base,
  until: number,
): Promise<RunReport | { restMs: number } | null> {
  const { ctx, replica, platform, cache, leased } = lease;
  const isForced = base.resyncRequestedAt !== null;
  await applyAttachmentKey(ctx, base, cache);
  const progress = progressSaver(ctx, base.id);
  using sync = leased.begin(base, isForced);
  const input = inputOf(lease, base, sync.stop, (latest) => {
    sync.isBuilding = true;
    progress.note(latest);
  });
  try {
    if (base.settings.rapid && base.sync && !isForced && platform.modifiedSince) {
      const cadence = () => cadenceFor(lease.budget, base, "rapid");
      let turns = 0;
      const isDone = await rapidBase({
        ...input,
        // What it rebuilds beside is one table: another sync begins that anew.
        onProgress: progress.note,
        cadence,
        modifiedSince: platform.modifiedSince,
        isGivenUp: () => isGivenUp(lease),
        // A turn that the budget slows down may take longer than a lease, and begins anew with each.
        isOver: () => performance.now() >= (turns > 0 ? until : until + CYCLES_WAITED * cadence().cycleMs),
        onRun: (report) => {
          if (!report.isBackground) turns++;
          return saveRun(lease, base, report);
        },
        onRead: (at) => trimOldRecentWrites(replica, cache, at),
      });
      if (isDone) return null;
    }
    // Before a first sync: that finds what changed before the feed began.
    const feed = await feedOf(lease, base, input.reader);
    // What another key may not do shows when the feed is read.
    leased.notify = () => feed?.notify();
    if (feed && base.sync && !isForced) {
      await goLive(lease, feed, {
        ...input,
        onProgress: progress.note,
        isGivenUp: () => isGivenUp(lease),
        isOver: () => isLiveOver(lease, until),
        onRun: (report) => saveRun(lease, base, report),
        onRead: (at) => trimOldRecentWrites(replica, cache, at),
      });
      return null;
    }
    const restMs = isForced || feed ? 0 : restOf(lease.budget, base, cache);
    if (restMs > 0) return { restMs };
    const startedAt = performance.now();
    const report = await syncBase({ ...input, isForced });
    if (report.completedAt) {
      // The next look of rapid mode goes back to this sync, and the next pass comes after it.
      cache.builds.clear();
      cache.polledUntil.clear();
      cache.scan = null;
      cache.scanStartedAt = startedAt;
      await feed?.closeFeedGap(startedAt);
      await trimOldRecentWrites(replica, cache, startedAt);
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

/** A lease that begins reads and writes the replica: it waits for a connection that there is anyway. */
function isLiveOver({ replica, isSaturated }: Lease, until: number): boolean {
  const now = performance.now();
  if (now < until) return false;
  return replica.isConnected() || isSaturated() || now >= until + LONGEST_LEASE_MS;
}

/** Whatever the setting is: tables that are not rebuilt yet may have URLs of ours. */
async function applyAttachmentKey(ctx: SyncContext, base: Base, cache: BaseCache): Promise<void> {
  if (base.attachmentKeyVersion === (cache.attachmentSigner?.keyVersion ?? 0)) return;
  cache.attachmentSigner = await attachmentSigner(ctx, base.id);
}

/** Asks whose the key is, which costs the base none of its quota; another lease tries again. */
async function learnUser({ ctx, baseId, leased }: Lease): Promise<void> {
  const { apiKey } = leased;
  try {
    const { id } = await leased.connection.whoami(leased.kill);
    if (leased.apiKey === apiKey) await recordSourceUser(ctx.db, baseId, id);
  } catch (error) {
    ctx.log.debug({ error }, "user of the key not known");
  }
}

/** Ends the lease; the base is taken up again when it has rested. */
async function release({ ctx, baseId, budget }: Lease, restMs: number): Promise<null> {
  const spentMs = budget.spentUntil ? budget.spentUntil.getTime() - Date.now() : Infinity;
  await restUntil(ctx.db, baseId, Math.min(restMs, spentMs));
  return null;
}

/** Keeps a report, where people and metrics see it. */
async function saveRun(lease: Lease, base: Base, report: RunReport): Promise<void> {
  const { ctx, cache } = lease;
  // What fails because the replica has been taken away is no failure of the base.
  if (report.error && (await hasLeft(ctx, base))) return;
  await recordRun(ctx.db, base.id, report);
  ctx.syncMetrics.observe(report, lease.syncedFrom);
  logRun(ctx.log, report);
  if (report.isBackground) return;
  lease.hasFailed = report.error !== undefined && report.error.code !== "replica_busy";
  if (report.error) {
    cache.failures++;
    cache.failedWith = report.error;
  }
  if (!report.completedAt) return;
  lease.syncedFrom = report.kind === "live" ? null : report.startedAt;
  cache.failures = 0;
  if (base.error?.code === "source_billing_limit") await ctx.limiter.lift(quotaKeyOf(base));
}

/** Is the base being deleted, gone, or moved to another database? As far as can be known: false while nobody can. */
async function hasLeft({ db }: Pick<Context, "db">, base: Base): Promise<boolean> {
  const known = await syncFacts(db, [base.id]).catch(() => null);
  const facts = known?.[0];
  if (!known) return false;
  return !facts || facts.state === "deleting" || facts.databaseId !== base.database.id;
}

/** Is it to make room for others? */
function isGivenUp({ hasFailed, isSaturated }: Lease): boolean {
  return hasFailed && isSaturated();
}

function needsAttention({ error }: RunReport): boolean {
  return error !== undefined && nextStep[error.code] === "needs_attention";
}

function isToBeSynced(base: Base): boolean {
  return base.state !== "paused" && base.state !== "deleting";
}
