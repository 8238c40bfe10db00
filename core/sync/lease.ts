/**
 * A lease of a base: sync after sync, for about a minute, by one worker.
 *
 * It ends with the first sync that ends after that minute: a long sweep, or in rapid mode a table that takes long,
 * keeps it for as long as it takes. Nothing waits for its end: heartbeats tell that the holder lives, and what people
 * change is seen within a second or so, also in the middle of a sync (`HeldBase`).
 *
 * I5. The lease begins by raising the replica's epoch; whoever held the base before can write no more, however long
 * it was frozen. The queue makes overlapping leases rare; the epoch makes them harmless.
 */

import type { Context } from "../context";
import {
  type Base,
  getBase,
  openApiKey,
  quotaKeyOf,
  type RunReport,
  recordRun,
  recordSchemaChanges,
  replicaTarget,
  settleSchemaLook,
  syncFacts,
} from "../control";
import { asBasetideError, isBasetideError, nextStep } from "../errors";
import type { Logger } from "../log";
import type { Ledger } from "../quota";
import { claimEpoch, ensureInstalled, openReplica, type Replica, takeTicket } from "../replica";
import { platformById } from "../source";
import type { Platform } from "../source/types";
import { HeldBase, type HeldSync } from "./held-base";
import { type BaseMemory, emptyMemory } from "./memory";
import type { SyncMetrics } from "./metrics";
import { failurePauseMs } from "./pauses";
import { progressSaver } from "./progress-saver";
import { rapidBase } from "./rapid";
import type { SettingsWatch } from "./settings-watch";
import { newReport, type SyncInput, syncBase } from "./sync-base";
import { TicketSource } from "./tickets";
import { trimOldJournal } from "./trim-journal";

const LEASE_MS = 60_000;
/** A small base is not swept more often than this. */
const MIN_SYNC_INTERVAL_MS = 1000;

export interface SyncContext extends Context {
  ledger: Ledger;
  platforms: Platform[];
  syncMetrics: SyncMetrics;
  settingsWatch: SettingsWatch;
}

/** What a worker keeps between leases, by base id. */
export type Memories = Map<string, BaseMemory>;

export interface LeaseSignals {
  /** Aborts when the worker is to stop: the page in hand is finished. */
  stop: AbortSignal;
  /** Aborts when it cannot wait any longer. */
  kill: AbortSignal;
}

/**
 * Syncs the base until the lease has run out, the worker stops, or there is nothing to sync any more.
 *
 * @returns whether the base is to be leased again at once
 */
export async function holdLease(
  ctx: SyncContext,
  baseId: string,
  memories: Memories,
  signals: LeaseSignals,
): Promise<boolean> {
  const log = ctx.log.child({ baseId });
  const base = await getBase(ctx.db, baseId);
  if (!isToBeSynced(base)) return false;
  const target = await replicaTarget(ctx, base);
  const replica = openReplica(target);
  try {
    await ensureInstalled(replica, target);
    const epoch = await claimEpoch(replica);
    const memory = recall(memories, base, epoch);
    const platform = platformById(ctx.platforms, base.platform);
    using held = await HeldBase.open({ ctx, base, platform, memory, watch: ctx.settingsWatch, ...signals });
    const lease = { ctx: { ...ctx, log }, baseId, platform, replica, epoch, memory, held };
    return await syncUntil(lease, performance.now() + LEASE_MS, base, signals.stop);
  } catch (error) {
    memories.delete(baseId);
    if (await hasLeft(ctx, base)) return false;
    if (!isBasetideError(error, "lease_lost")) throw error;
    log.warn("lease lost to another worker");
    return false;
  } finally {
    await replica.close();
  }
}

interface Lease {
  ctx: SyncContext;
  baseId: string;
  platform: Platform;
  replica: Replica;
  epoch: number;
  memory: BaseMemory;
  held: HeldBase;
}

async function syncUntil(lease: Lease, until: number, first: Base, stop: AbortSignal): Promise<boolean> {
  const { ctx, baseId, memory, held } = lease;
  for (let base = first; ; base = await getBase(ctx.db, baseId)) {
    if (stop.aborted) return true;
    if (!isToBeSynced(base)) return false;
    // Moved to another database, or paused and resumed within a second, say: another lease goes on.
    if (base.database.id !== first.database.id || held.isOver || performance.now() >= until) return true;
    const startedAt = performance.now();
    const apiKey = held.apiKey;
    try {
      const report = await syncAs(lease, base, until);
      if (report) {
        // What a key that has been replaced meanwhile may not do is no news, and would stop the base.
        if (needsAttention(report) && (await openApiKey(ctx, base)) !== apiKey) continue;
        await keepRun(lease, base, report);
        if (needsAttention(report)) return false;
        if (report.error) await held.rest(failurePauseMs(++memory.failures));
      }
      if (!report?.error)
        await held.rest(Math.max(0, MIN_SYNC_INTERVAL_MS - (performance.now() - startedAt)));
    } catch (error) {
      // The worker stops, or somebody changed what only another sync can do.
      if (!isBasetideError(error, "sync_stopped")) throw error;
    }
  }
}

/**
 * Syncs once, or in rapid mode until the lease is over.
 *
 * @returns the report; null where rapid mode has told of its syncs itself
 */
async function syncAs(lease: Lease, base: Base, until: number): Promise<RunReport | null> {
  const { ctx, replica, platform, memory, held } = lease;
  const isForced = base.resyncRequestedAt !== null;
  const progress = progressSaver(ctx, base.id);
  using sync = held.begin(base, isForced);
  const input = inputOf(lease, base, sync, (latest) => {
    sync.isBuilding = true;
    progress.note(latest);
  });
  try {
    if (base.settings.rapid && base.sync && !isForced && platform.modifiedSince) {
      const isDone = await rapidBase({
        ...input,
        // What it rebuilds beside is one table: another sync begins that anew.
        onProgress: progress.note,
        modifiedSince: platform.modifiedSince,
        isOver: () => performance.now() >= until,
        onRun: (report) => keepRun(lease, base, report),
        onRead: (at) => trimOldJournal(replica, memory, at),
      });
      if (isDone) return null;
    }
    const startedAt = performance.now();
    const report = await syncBase({ ...input, isForced });
    if (report.completedAt) {
      // The next look of rapid mode goes back to this sync.
      memory.lookedUntil.clear();
      memory.pass = null;
      await trimOldJournal(replica, memory, startedAt);
    }
    return report;
  } catch (caught) {
    const error = asBasetideError(caught);
    if (nextStep[error.code] === "stop") throw error;
    return { ...newReport(), kind: "rapid", error };
  } finally {
    await progress.end();
  }
}

function inputOf(
  { ctx, replica, epoch, memory, held }: Lease,
  base: Base,
  sync: HeldSync,
  onProgress: SyncInput["onProgress"],
): Omit<SyncInput, "isForced"> {
  return {
    base,
    replica,
    epoch,
    memory,
    schemaPollMs: ctx.config.schemaPollMs,
    onProgress,
    onShapeChange: (changes) => {
      recordSchemaChanges(ctx.db, base.id, changes).catch((error: unknown) => {
        ctx.log.warn({ error, changes: changes.length }, "schema changes not noted");
      });
    },
    onRequestedLook: (requestedAt) => {
      settleSchemaLook(ctx.db, base.id, requestedAt).catch((error: unknown) => {
        ctx.log.debug({ error }, "requested look not settled");
      });
    },
    reader: {
      connection: held.connection,
      sourceBaseId: base.sourceBaseId,
      ledger: ctx.ledger,
      quotaKey: quotaKeyOf(base),
      share: held.share,
      tickets: new TicketSource(() => takeTicket(replica)),
      log: ctx.log,
      stop: sync.stop,
      kill: held.kill,
    },
  };
}

/** Keeps a report, where people and metrics see it. */
async function keepRun({ ctx, memory }: Lease, base: Base, report: RunReport): Promise<void> {
  // What fails because the replica has been taken away is no failure of the base.
  if (report.error && (await hasLeft(ctx, base))) return;
  await recordRun(ctx.db, base.id, report);
  ctx.syncMetrics.observe(report);
  logRun(ctx.log, report);
  if (!report.completedAt || report.isBeside) return;
  memory.failures = 0;
  if (base.error?.code === "source_billing_limit") await ctx.ledger.lift(quotaKeyOf(base));
}

/** Memories hold only if this lease follows directly on the one they are of, in the same database. */
function recall(memories: Memories, { id, database }: Base, epoch: number): BaseMemory {
  const known = memories.get(id);
  const isLast = known?.epoch === epoch - 1 && known.databaseId === database.id;
  const memory = isLast ? known : emptyMemory(epoch);
  memory.epoch = epoch;
  memory.databaseId = database.id;
  memories.set(id, memory);
  return memory;
}

/** Is the base being deleted, gone, or moved to another database? As far as can be known: false while nobody can. */
async function hasLeft({ db }: Pick<Context, "db">, base: Base): Promise<boolean> {
  const known = await syncFacts(db, [base.id]).catch(() => null);
  const facts = known?.[0];
  if (!known) return false;
  return !facts || facts.state === "deleting" || facts.databaseId !== base.database.id;
}

function needsAttention({ error }: RunReport): boolean {
  return error !== undefined && nextStep[error.code] === "needs_attention";
}

function isToBeSynced(base: Base): boolean {
  return base.state !== "paused" && base.state !== "deleting";
}

/** First syncs, rebuilds and failures are news; sweeps and turns go on for ever. */
function logRun(log: Logger, { error, tables: _, issues: __, ...facts }: RunReport): void {
  if (error) log.warn({ ...facts, code: error.code, error }, "sync failed");
  else if (facts.kind === "sweep" || facts.kind === "rapid") log.debug(facts, "sync completed");
  else log.info(facts, "sync completed");
}

/** An error that kept a lease from even starting, as a run for people to see. */
export function failedRun(error: unknown): RunReport {
  return { ...newReport(), error: asBasetideError(error) };
}
