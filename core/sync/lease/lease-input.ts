/** Builds the input of a lease's syncs: the base as it was read, its replica, and the reader for the source. */

import type { Config } from "../../config";
import type { AttachmentUrls } from "../../replica";
import { attachmentPrefix, takeReadVersion } from "../../replica";
import { ownCallsKey, quotaKeyOf } from "../../source";
import type { CatchUpInput, SyncInput } from "../engine";
import type { SyncedBase } from "../host";
import { withinBudget } from "../pacing";
import { ReadVersionSource } from "../state";
import type { Lease } from "./lease";
import { cadenceFor } from "./sweep-cadence";

/** @param stop aborts when the sync must make no further request */
export function inputOf(
  lease: Lease,
  base: SyncedBase,
  stop: AbortSignal,
  onProgress: SyncInput["onProgress"],
): Omit<SyncInput, "isForced"> {
  const { ctx, replica, epoch, cache, leased, budget, platform } = lease;
  const quotaKey = quotaKeyOf(base);
  const mode = base.settings.rapid ? "rapid" : "sweep";
  const count = ctx.callCounter.counting([quotaKey, ownCallsKey(base.id)]);
  let isAnswered = false;
  return {
    base,
    replica,
    epoch,
    cache,
    attachmentUrls: attachmentUrlsOf(ctx.config, base),
    sample: platform.sample,
    isWatched: () => leased.isWatched,
    // A budget pays for what is asked for.
    modifiedSince: budget.ratePerSecond === Number.POSITIVE_INFINITY ? platform.modifiedSince : undefined,
    schemaPollMs: Math.max(ctx.config.schemaPollMs, cadenceFor(budget, base, mode).schemaMs),
    onProgress,
    onShapeChange: (changes) => {
      lease.indexes.changed();
      lease.wake.notify();
      ctx.host.save(base.id, { schemaChanges: changes }).catch((error: unknown) => {
        ctx.log.warn({ error, changes: changes.length }, "recording schema changes failed");
      });
    },
    onSchema: (schema) => {
      ctx.host.save(base.id, { sourceSchema: schema }).catch((error: unknown) => {
        ctx.log.warn({ error, tables: schema.tables.length }, "saving how tables are shown failed");
      });
    },
    onSchemaError: lease.onSchemaError,
    onMisplaced: (records) => ctx.host.save(base.id, { toRepair: records }),
    onRequestedSchemaCheck: (requestedAt) => {
      ctx.host.save(base.id, { schemaCheckedAt: requestedAt }).catch((error: unknown) => {
        ctx.log.debug({ error }, "completing a requested schema check failed");
      });
    },
    reader: {
      connection: leased.connection,
      sourceBaseId: base.sourceBaseId,
      limiter: withinBudget(ctx.limiter, budget),
      quotaKey,
      onRequest: (kind) => {
        count(kind);
        ctx.syncMetrics.requested(kind);
      },
      onAnswer: () => {
        isAnswered = true;
      },
      // While the source is still down, a failed request is not retried, so that it does not delay bases that
      // wait.
      mayTryAgain: () => isAnswered || cache.failures === 0 || !lease.isSaturated(),
      onLost: (images) => ctx.syncMetrics.lost(images),
      share: leased.share,
      readVersions: new ReadVersionSource(() => takeReadVersion(replica)),
      log: ctx.log,
      stop,
      kill: leased.kill,
    },
  };
}

/** Returns the same input for a catch-up. */
export async function catchUpInput(lease: Lease, stop: AbortSignal): Promise<CatchUpInput> {
  const { ctx, baseId, leased, platform } = lease;
  const base = await ctx.host.base(baseId);
  leased.notify();
  const { modifiedSince } = platform;
  return { ...inputOf(lease, base, stop, () => {}), ctx, modifiedSince };
}

/** Returns how attachments are linked according to the base's settings; undefined: by the source's URLs. */
export function attachmentUrlsOf(
  { consoleUrl }: Pick<Config, "consoleUrl">,
  { id, settings, attachmentKeyVersion }: SyncedBase,
): AttachmentUrls | undefined {
  if (!settings.ownAttachmentUrls) return undefined;
  return { prefix: attachmentPrefix(consoleUrl, id), keyVersion: attachmentKeyVersion };
}
