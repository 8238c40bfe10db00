/**
 * A lease of a base: sync after sync, for up to a minute, by one worker.
 *
 * I5. The lease begins by raising the replica's epoch; whoever held the base before can write no more, however long
 * it was frozen. The queue makes overlapping leases rare; the epoch makes them harmless.
 */

import type { Context } from "../context";
import {
  type Base,
  getBase,
  openApiKey,
  type Progress,
  type RunReport,
  recordRun,
  replicaTarget,
  saveProgress,
} from "../control";
import { asBasetideError, isBasetideError, nextStep } from "../errors";
import type { Logger } from "../log";
import type { Ledger } from "../quota";
import { claimEpoch, ensureInstalled, openReplica, type Replica, takeTicket, trimJournal } from "../replica";
import { platformById } from "../source";
import type { Platform } from "../source/types";
import { wait } from "../wait";
import { type BaseMemory, emptyMemory } from "./memory";
import type { SyncMetrics } from "./metrics";
import { newReport, syncBase } from "./sync-base";
import { TicketSource } from "./tickets";

const LEASE_MS = 60_000;
/** A small base is not swept more often than this. */
const MIN_SYNC_INTERVAL_MS = 1000;
/** Pause after a sync that failed; it doubles with each further one. */
const FIRST_FAILURE_PAUSE_MS = 2000;
const MAX_FAILURE_PAUSE_MS = 60_000;
const PROGRESS_INTERVAL_MS = 1000;
/** Requests a second that a sync may make: by default, and with turbo (the source's own limit). */
const DEFAULT_SHARE = 3;
const TURBO_SHARE = 5;
/** Notes of the journal are kept for this long: images that were asked for earlier are refused and asked for again. */
const JOURNAL_KEPT_MS = 120_000;
const TRIM_INTERVAL_MS = 30_000;

export interface SyncContext extends Context {
  ledger: Ledger;
  platforms: Platform[];
  syncMetrics: SyncMetrics;
}

/** What a worker keeps between leases, by base id. */
export type Memories = Map<string, BaseMemory>;

export interface LeaseSignals {
  /** Aborts when the worker is to stop: the page in hand is finished. */
  stop: AbortSignal;
  /** Aborts when it cannot wait any longer. */
  kill: AbortSignal;
}

/** The source base as the ledger knows it: whoever's key is used, its quota is one. */
export function quotaKeyOf(base: Pick<Base, "platform" | "sourceBaseId">): string {
  return `${base.platform}:${base.sourceBaseId}`;
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
  const first = await getBase(ctx.db, baseId);
  if (!isToBeSynced(first)) return false;
  const target = await replicaTarget(ctx, first);
  const replica = openReplica(target);
  try {
    await ensureInstalled(replica, target);
    const epoch = await claimEpoch(replica);
    const memory = recall(memories, baseId, epoch);
    const until = performance.now() + LEASE_MS;
    for (let failures = 0; performance.now() < until && !signals.stop.aborted; ) {
      const base = failures === 0 && memory.tables.size === 0 ? first : await getBase(ctx.db, baseId);
      if (!isToBeSynced(base)) return false;
      const startedAt = performance.now();
      const apiKey = await openApiKey(ctx, base);
      const report = await syncOnce({ ...ctx, log }, base, apiKey, replica, epoch, memory, signals);
      // What a key that has been replaced meanwhile may not do is no news, and would stop the base.
      if (needsAttention(report) && (await openApiKey(ctx, base)) !== apiKey) continue;
      await recordRun(ctx.db, baseId, report);
      ctx.syncMetrics.observe(report);
      logRun(log, report);
      if (report.error) {
        if (needsAttention(report)) return false;
        failures++;
        await wait(failurePauseMs(failures), signals.stop);
      } else {
        failures = 0;
        await trimOldJournal(replica, memory);
        await wait(Math.max(0, MIN_SYNC_INTERVAL_MS - (performance.now() - startedAt)), signals.stop);
      }
    }
    return true;
  } catch (error) {
    if (isBasetideError(error, "sync_stopped")) return true;
    memories.delete(baseId);
    if (!isBasetideError(error, "lease_lost")) throw error;
    log.warn("lease lost to another worker");
    return false;
  } finally {
    await replica.close();
  }
}

async function syncOnce(
  ctx: SyncContext,
  base: Base,
  apiKey: string,
  replica: Replica,
  epoch: number,
  memory: BaseMemory,
  { stop, kill }: LeaseSignals,
): Promise<RunReport> {
  const progress = progressSaver(ctx, base.id);
  try {
    return await syncBase({
      base,
      replica,
      epoch,
      memory,
      schemaPollMs: ctx.config.schemaPollMs,
      isForced: base.resyncRequestedAt !== null,
      onProgress: progress.note,
      reader: {
        connection: platformById(ctx.platforms, base.platform).connect(apiKey),
        sourceBaseId: base.sourceBaseId,
        ledger: ctx.ledger,
        quotaKey: quotaKeyOf(base),
        share: base.settings.turbo ? TURBO_SHARE : DEFAULT_SHARE,
        tickets: new TicketSource(() => takeTicket(replica)),
        log: ctx.log,
        stop,
        kill,
      },
    });
  } finally {
    await progress.end();
  }
}

/** Saves the latest progress at once, and then once a second at most. Progress that cannot be saved is no failure. */
function progressSaver(ctx: SyncContext, baseId: string) {
  let latest: Progress | undefined;
  let saving: Promise<void> = Promise.resolve();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const save = () => {
    timer = setTimeout(() => {
      timer = undefined;
      if (latest) save();
    }, PROGRESS_INTERVAL_MS);
    const progress = latest!;
    latest = undefined;
    saving = saving
      .then(() => saveProgress(ctx.db, baseId, progress))
      .catch((error) => ctx.log.debug({ error }, "progress not saved"));
  };
  return {
    note(progress: Progress) {
      latest = progress;
      if (!timer) save();
    },
    async end() {
      clearTimeout(timer);
      await saving;
    },
  };
}

/** Memories hold only if this lease follows directly on the one they are of. */
function recall(memories: Memories, baseId: string, epoch: number): BaseMemory {
  const known = memories.get(baseId);
  const memory = known?.epoch === epoch - 1 ? known : emptyMemory(epoch);
  memory.epoch = epoch;
  memories.set(baseId, memory);
  return memory;
}

/** Remembers a ticket of now, and forgets the journal up to one of two minutes ago. */
async function trimOldJournal(replica: Replica, memory: BaseMemory): Promise<void> {
  const now = performance.now();
  const points = memory.trimPoints;
  if (now - (points.at(-1)?.at ?? 0) < TRIM_INTERVAL_MS && points.length > 0) return;
  points.push({ at: now, ticket: await takeTicket(replica) });
  let old: number | undefined;
  while (points[0] && now - points[0].at > JOURNAL_KEPT_MS) old = points.shift()!.ticket;
  if (old !== undefined) await trimJournal(replica, old);
}

function needsAttention({ error }: RunReport): boolean {
  return error !== undefined && nextStep[error.code] === "needs_attention";
}

function isToBeSynced(base: Base): boolean {
  return base.state !== "paused" && base.state !== "deleting";
}

/** First syncs, rebuilds and failures are news; sweeps go on for ever. */
function logRun(log: Logger, { error, tables: _, issues: __, ...facts }: RunReport): void {
  if (error) log.warn({ ...facts, code: error.code, error }, "sync failed");
  else if (facts.kind === "sweep") log.debug(facts, "sync completed");
  else log.info(facts, "sync completed");
}

function failurePauseMs(failures: number): number {
  return Math.min(MAX_FAILURE_PAUSE_MS, FIRST_FAILURE_PAUSE_MS * 2 ** (failures - 1)) * (0.5 + Math.random());
}

/** An error that kept a lease from even starting, as a run for people to see. */
export function failedRun(error: unknown): RunReport {
  return { ...newReport(), error: asBasetideError(error) };
}
