/**
 * A lease of a base: sync after sync, for about a minute, by one worker.
 *
 * It ends with the first sync that ends after that minute: a long sweep, or in rapid mode a table that takes long,
 * keeps it for as long as it takes. A live base at rest keeps it until its replica is written to, and the next lease takes
 * over the connection: renewing leases costs no login. Nothing waits for its end: heartbeats tell that the holder lives, and what people
 * change is seen within a second or so, also in the middle of a sync (`HeldBase`).
 *
 * I5. The lease begins by raising the replica's epoch; whoever held the base before can write no more, however long
 * it was frozen. The queue makes overlapping leases rare; the epoch makes them harmless.
 */

import type { Context } from "../../context";
import {
  attachmentSigner,
  type Base,
  getBase,
  letRest,
  noteSourceUser,
  openApiKey,
  type RunReport,
  recordRun,
  renameIndexes,
  replicaTarget,
  syncFacts,
} from "../../control/bases";
import { quotaKeyOf } from "../../control/budgets";
import { asBasetideError, isBasetideError, nextStep } from "../../errors";
import type { CallCounter, Ledger } from "../../limiter";
import { agoMs } from "../../postgres";
import {
  claimEpoch,
  dropUnfinished,
  ensureInstalled,
  isOtherTimeline,
  noteDamage,
  type Replica,
} from "../../replica";
import type { Platform } from "../../source";
import { platformById } from "../../source";
import { failSpan, span } from "../../trace";
import { CatchUps, newReport, syncBase } from "../engine";
import type { PingWatch } from "../modes/live";
import { rapidBase } from "../modes/rapid";
import type { BudgetWatch, HeldBudget } from "../pacing";
import { failurePauseMs, isOutage } from "../pacing";
import { type BaseMemory, forgetRows, recall } from "../state";
import { IndexKeeper } from "./index-keeper";
import { catchUpInput, inputOf } from "./lease-input";
import { leaveReplica, takeReplica } from "./lease-replica";
import { HeldBase } from "./leased-base";
import { feedOf, goLive } from "./live-lease";
import { logRun } from "./log-run";
import type { SyncMetrics } from "./metrics";
import { progressSaver } from "./progress-saver";
import { ReplicaExtras } from "./replica-extras";
import { isContinued } from "./replica-state";
import type { SettingsWatch } from "./settings-watch";
import { cadenceFor, MIN_SYNC_INTERVAL_MS, restOf } from "./sweep-cadence";
import { trimOldJournal } from "./trim-recent-writes";

const LEASE_MS = 60_000;
/** A live base that is at rest for longer logs in to begin another lease. */
const LONGEST_LEASE_MS = 3600_000;
/** A base whose next sweep is further off is given back, so that it takes no room in the worker meanwhile. */
const LONGEST_REST_MS = 20_000;
/** In rapid mode a lease waits for the first turn to end: for as long as so many usually take. */
const TURNS_WAITED = 2;
/** What people have asked for is known after this. */
const NOTICE_MS = 1500;
/** How often a base whose budget is spent looks whether it still is. */
const SPENT_REST_MS = 3600_000;

export interface SyncContext extends Context {
  ledger: Ledger;
  platforms: Platform[];
  syncMetrics: SyncMetrics;
  settingsWatch: SettingsWatch;
  pings: PingWatch;
  budgetWatch: BudgetWatch;
  callCounter: CallCounter;
}

/** What a worker keeps between leases, by base id. */
export type Memories = Map<string, BaseMemory>;

export interface LeaseSignals {
  /** Aborts when the worker is to stop: the page in hand is finished. */
  stop: AbortSignal;
  /** Aborts when it cannot wait any longer. */
  kill: AbortSignal;
  /** Do others wait, and the worker has no room for them? */
  isCrowded?: () => boolean;
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
  memories: Memories,
  signals: LeaseSignals,
): Promise<number | null> {
  const { stop, kill, isCrowded = () => false } = signals;
  const log = ctx.log.child({ baseId });
  const base = await getBase(ctx.db, baseId);
  if (!isToBeSynced(base)) return null;
  const target = await replicaTarget(ctx, base);
  const replica = takeReplica(memories.get(baseId), target);
  let isLeftOpen = false;
  try {
    await ensureInstalled(replica, target);
    const epoch = await claimEpoch(replica);
    const [isSame, emptied] = await Promise.all([
      isContinued(ctx, baseId, replica, epoch),
      noteDamage(replica, epoch),
    ]);
    if (emptied.length > 0) log.warn({ tableIds: emptied }, "rows may be gone: these tables are compared");
    const memory = recall(memories.get(baseId), base, epoch, isSame);
    forgetRows(memory, emptied);
    memories.set(baseId, memory);
    const platform = platformById(ctx.platforms, base.platform);
    using budget = await ctx.budgetWatch.hold(baseId);
    using held = await HeldBase.open({ ctx, base, platform, memory, watch: ctx.settingsWatch, stop, kill });
    const syncedFrom =
      base.sync && base.sync.kind !== "live" ? new Date(Date.now() - agoMs(base, base.sync.startedAt)) : null;
    const what = { baseId, platform, replica, epoch, memory, held, budget };
    const indexes = new IndexKeeper(replica, epoch, log, (before, now) =>
      renameIndexes(ctx.db, baseId, before, now),
    );
    const lease = { ctx: { ...ctx, log }, ...what, indexes, syncedFrom, isCrowded, hasFailed: false };
    await followExtras(lease, base);
    if (base.sourceUserId === null) void learnUser(lease);
    await using catchUps = new CatchUps(() => catchUpInput(lease), held.stop);
    held.onCatchUp = (at) => catchUps.request(at);
    catchUps.request(base.catchUpRequestedAt);
    const next = await syncUntil(lease, performance.now() + LEASE_MS, base, stop);
    isLeftOpen = next === 0 && !stop.aborted && !held.isOver && !indexes.isWorking;
    if (isLeftOpen) leaveReplica(memory, target, replica);
    return next;
  } catch (error) {
    // What is known of the replica is still so when a database was away, unless somebody else had the base meanwhile.
    if (!isOutage(error)) memories.delete(baseId);
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
async function followExtras(
  { ctx, replica, epoch, memory, held, indexes }: Lease,
  base: Base,
): Promise<void> {
  const extras = new ReplicaExtras(replica, epoch, ctx.log);
  await extras.follow(base.settings);
  await dropUnfinished(replica, epoch, memory.builds.keys());
  indexes.follow(base.settings.indexes);
  held.onSettings = (settings) => {
    indexes.follow(settings.indexes);
    extras.follow(settings).catch((error: unknown) => ctx.log.debug({ error }, "settings not followed yet"));
  };
}

export interface Lease {
  ctx: SyncContext;
  baseId: string;
  platform: Platform;
  replica: Replica;
  epoch: number;
  memory: BaseMemory;
  held: HeldBase;
  budget: HeldBudget;
  indexes: IndexKeeper;
  isCrowded: () => boolean;
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
  const { ctx, baseId, memory, held } = lease;
  const noticedAt = performance.now() + NOTICE_MS;
  for (let base = first; ; base = await getBase(ctx.db, baseId)) {
    if (stop.aborted) return 0;
    if (!isToBeSynced(base)) return null;
    // Moved to another database, or paused and resumed within a second, say: another lease goes on.
    if (base.database.id !== first.database.id || held.isOver) return 0;
    // A table that waits to go live would be read once more by the next lease.
    if (performance.now() >= until && memory.builds.size === 0) return 0;
    const startedAt = performance.now();
    const apiKey = held.apiKey;
    try {
      const report = await span("sync", { "basetide.base_id": baseId }, () => syncAs(lease, base, until));
      if (report && "restMs" in report) {
        if (report.restMs > LONGEST_REST_MS && performance.now() > noticedAt)
          return await giveBack(lease, report.restMs);
        await held.rest(Math.min(report.restMs, NOTICE_MS));
        continue;
      }
      if (report) {
        // What a key that has been replaced meanwhile may not do is no news, and would stop the base.
        if (needsAttention(report) && (await openApiKey(ctx, base)) !== apiKey) continue;
        await keepRun(lease, base, report);
        if (needsAttention(report)) return null;
        if (report.error?.code === "budget_spent") return await giveBack(lease, SPENT_REST_MS);
      }
      if (report?.error || isGivenUp(lease)) {
        const pauseMs = failurePauseMs(memory.failures, memory.failedWith ?? undefined);
        if (isGivenUp(lease) || pauseMs > LONGEST_REST_MS) return pauseMs;
        await held.rest(pauseMs);
      } else await held.rest(Math.max(0, MIN_SYNC_INTERVAL_MS - (performance.now() - startedAt)));
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
  const { ctx, replica, platform, memory, held } = lease;
  const isForced = base.resyncRequestedAt !== null;
  await followAttachmentKey(ctx, base, memory);
  const progress = progressSaver(ctx, base.id);
  using sync = held.begin(base, isForced);
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
        isOver: () => performance.now() >= (turns > 0 ? until : until + TURNS_WAITED * cadence().turnMs),
        onRun: (report) => {
          if (!report.isBeside) turns++;
          return keepRun(lease, base, report);
        },
        onRead: (at) => trimOldJournal(replica, memory, at),
      });
      if (isDone) return null;
    }
    // Before a first sync: that finds what changed before the feed began.
    const feed = await feedOf(lease, base, input.reader);
    // What another key may not do shows when the feed is read.
    held.poke = () => feed?.poke();
    if (feed && base.sync && !isForced) {
      await goLive(lease, feed, {
        ...input,
        onProgress: progress.note,
        isGivenUp: () => isGivenUp(lease),
        isOver: () => isLiveOver(lease, until),
        onRun: (report) => keepRun(lease, base, report),
        onRead: (at) => trimOldJournal(replica, memory, at),
      });
      return null;
    }
    const restMs = isForced || feed ? 0 : restOf(lease.budget, base, memory);
    if (restMs > 0) return { restMs };
    const startedAt = performance.now();
    const report = await syncBase({ ...input, isForced });
    if (report.completedAt) {
      // The next look of rapid mode goes back to this sync, and the next pass comes after it.
      memory.builds.clear();
      memory.lookedUntil.clear();
      memory.pass = null;
      memory.passBegunAt = startedAt;
      await feed?.closeGap(startedAt);
      await trimOldJournal(replica, memory, startedAt);
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
function isLiveOver({ replica, isCrowded }: Lease, until: number): boolean {
  const now = performance.now();
  if (now < until) return false;
  return replica.isConnected() || isCrowded() || now >= until + LONGEST_LEASE_MS;
}

/** Whatever the setting is: tables that are not rebuilt yet may have URLs of ours. */
async function followAttachmentKey(ctx: SyncContext, base: Base, memory: BaseMemory): Promise<void> {
  if (base.attachmentKeyVersion === (memory.attachmentSigner?.keyVersion ?? 0)) return;
  memory.attachmentSigner = await attachmentSigner(ctx, base.id);
}

/** Asks whose the key is, which costs the base none of its quota; another lease tries again. */
async function learnUser({ ctx, baseId, held }: Lease): Promise<void> {
  const { apiKey } = held;
  try {
    const { id } = await held.connection.whoami(held.kill);
    if (held.apiKey === apiKey) await noteSourceUser(ctx.db, baseId, id);
  } catch (error) {
    ctx.log.debug({ error }, "user of the key not known");
  }
}

/** Ends the lease; the base is taken up again when it has rested. */
async function giveBack({ ctx, baseId, budget }: Lease, restMs: number): Promise<null> {
  const spentMs = budget.spentUntil ? budget.spentUntil.getTime() - Date.now() : Infinity;
  await letRest(ctx.db, baseId, Math.min(restMs, spentMs));
  return null;
}

/** Keeps a report, where people and metrics see it. */
async function keepRun(lease: Lease, base: Base, report: RunReport): Promise<void> {
  const { ctx, memory } = lease;
  // What fails because the replica has been taken away is no failure of the base.
  if (report.error && (await hasLeft(ctx, base))) return;
  await recordRun(ctx.db, base.id, report);
  ctx.syncMetrics.observe(report, lease.syncedFrom);
  logRun(ctx.log, report);
  if (report.isBeside) return;
  lease.hasFailed = report.error !== undefined && report.error.code !== "replica_busy";
  if (report.error) {
    memory.failures++;
    memory.failedWith = report.error;
  }
  if (!report.completedAt) return;
  lease.syncedFrom = report.kind === "live" ? null : report.startedAt;
  memory.failures = 0;
  if (base.error?.code === "source_billing_limit") await ctx.ledger.lift(quotaKeyOf(base));
}

/** Is the base being deleted, gone, or moved to another database? As far as can be known: false while nobody can. */
async function hasLeft({ db }: Pick<Context, "db">, base: Base): Promise<boolean> {
  const known = await syncFacts(db, [base.id]).catch(() => null);
  const facts = known?.[0];
  if (!known) return false;
  return !facts || facts.state === "deleting" || facts.databaseId !== base.database.id;
}

/** Is it to make room for others? */
function isGivenUp({ hasFailed, isCrowded }: Lease): boolean {
  return hasFailed && isCrowded();
}

function needsAttention({ error }: RunReport): boolean {
  return error !== undefined && nextStep[error.code] === "needs_attention";
}

function isToBeSynced(base: Base): boolean {
  return base.state !== "paused" && base.state !== "deleting";
}
