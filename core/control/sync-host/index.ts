/** The control plane as the host of sync. */
import type { Context } from "../../context";
import type { Host } from "../../sync/host";
import {
  afterSweep,
  attachmentSigner,
  type Base,
  completeSchemaCheck,
  decryptApiKey,
  getBase,
  interruptedBy,
  lastReplicaState,
  recordProblems,
  recordReplicaState,
  recordRun,
  recordSchemaChanges,
  recordSourceUser,
  renameIndexes,
  replicaTarget,
  restUntil,
  SettingsWatch,
  saveFailingTables,
  saveProgress,
  saveSchemaError,
  saveSourceTables,
  selectingOf,
  sourceAccess,
  syncFacts,
} from "../bases";
import { allowancesOf } from "../budgets";
import {
  closeFeedGap,
  loadFeed,
  NotificationListener,
  recordDrift,
  recordFailing,
  recordFeedGap,
  recordInSync,
  recordMissedNotification,
  recordRead,
  recordRefused,
  recordWebhookHealthy,
  saveCursor,
  saveWebhook,
} from "../feeds";
import { requestRepairs, settleCatchUp } from "../jobs";
import { measuredSizes } from "../onboarding";
import { nameSqlUsers } from "../placement";

type HostContext = Pick<Context, "config" | "db" | "log" | "secrets">;

/** @param pollMs how often changes that people make are read; a second unless given */
export function createSyncHost(ctx: HostContext, pollMs?: number): Host {
  const { db } = ctx;
  const settingsWatch = new SettingsWatch(ctx, pollMs);
  const notifications = new NotificationListener(ctx);
  return {
    base: (id) => getBase(db, id),
    async access({ id, selection }) {
      const access = await sourceAccess(ctx, id);
      return { apiKey: decryptApiKey(ctx, access), selecting: selectingOf(ctx, { ...access, selection }) };
    },
    replicaTarget: (base) => replicaTarget(ctx, base),
    attachmentSigner: (id) => attachmentSigner(ctx, id),
    measuredSizes: (id) => measuredSizes(db, id),
    facts: async (id) => (await syncFacts(db, [id]))[0],
    watch: (id, onFacts) => settingsWatch.watch(id, onFacts),
    interruptedBy: (before: Base["settings"], now: Base["settings"]) => interruptedBy(before, now),
    allowances: (ids) => allowancesOf(db, ids),
    replicaState: (id) => lastReplicaState(db, id),
    recordReplicaState: (id, state, mayHaveLost) => recordReplicaState(db, id, state, mayHaveLost),
    async save(id, found) {
      if (found.problems) await recordProblems(db, id, found.problems);
      if (found.failingTables) await saveFailingTables(db, id, found.failingTables);
      if (found.schemaError !== undefined) await saveSchemaError(db, id, found.schemaError);
      if (found.progress) await saveProgress(db, id, found.progress, found.isFurther);
      if (found.schemaChanges) await recordSchemaChanges(db, id, found.schemaChanges);
      if (found.sourceSchema) await saveSourceTables(db, id, found.sourceSchema);
      if (found.sourceUserId !== undefined) await recordSourceUser(db, id, found.sourceUserId);
      if (found.indexes) await renameIndexes(db, id, found.indexes.before, found.indexes.now);
      if (found.toRepair) await requestRepairs(db, id, found.toRepair);
      if (found.schemaCheckedAt) await completeSchemaCheck(db, id, found.schemaCheckedAt);
      if (found.caughtUpAt) await settleCatchUp(db, id, found.caughtUpAt);
    },
    async saveRun(base: Base, result) {
      const report = { ...result };
      if (result.error?.code === "replica_busy") {
        const message = await nameSqlUsers(db, base.database.id, result.error.message);
        report.error = { code: "replica_busy", message };
      }
      const isSweep = report.kind === "sweep" && report.completedAt !== null;
      // Postgres would parse and compare them.
      if (isSweep && !report.isBackground && Bun.deepEquals(report.tables, base.tables))
        report.tables = undefined;
      await recordRun(db, base.id, report, {
        isCapOver: base.error?.code === "source_billing_limit",
        resyncRequestedAt: base.resyncRequestedAt,
      });
      return isSweep && report.issues === undefined ? afterSweep(base, result) : undefined;
    },
    restUntil: (id, ms) => restUntil(db, id, ms),
    notifier: (id) => notifications.notifier(id),
    feeds: {
      addressState: () => notifications.addressState,
      async load(id) {
        const saved = await loadFeed(db, id);
        if (!saved) return undefined;
        const { encryptedSecret, ...feed } = saved;
        return { ...feed, isSecretReadable: isReadable(ctx, id, encryptedSecret) };
      },
      saveWebhook(id, replaced, { secretBase64, ...webhook }) {
        const encryptedSecret = ctx.secrets.encrypt(secretBase64, `live_feeds.secret:${id}`);
        return saveWebhook(db, id, replaced, { ...webhook, encryptedSecret });
      },
      recordHealthy: (id, webhookId, expiresMs) => recordWebhookHealthy(db, id, webhookId, expiresMs),
      recordRefused: (id, reason) => recordRefused(db, id, reason),
      recordFailing: (id, reason, retryInMs) => recordFailing(db, id, reason, retryInMs),
      recordGap: (id, webhookId) => recordFeedGap(db, id, webhookId),
      recordDrift: (id) => recordDrift(db, id),
      closeGap: (id, gapSince) => closeFeedGap(db, id, gapSince),
      saveCursor: (id, webhookId, cursor) => saveCursor(db, id, webhookId, cursor),
      recordRead: (id, facts) => recordRead(db, id, facts),
      recordMissedNotification: (id) => recordMissedNotification(db, ctx.config.consoleUrl, id),
      recordInSync: (id) => recordInSync(db, id),
    },
  };
}

function isReadable(
  { secrets }: Pick<Context, "secrets">,
  baseId: string,
  encrypted: string | null,
): boolean {
  try {
    if (encrypted !== null) secrets.decrypt(encrypted, `live_feeds.secret:${baseId}`);
    return true;
  } catch {
    return false;
  }
}
