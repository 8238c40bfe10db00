/**
 * The feed of a base as its lease reads it: a webhook that is kept alive, notifications, and a durable cursor.
 *
 * E1. A cursor (`from`, `cursor`) that the engine sees means the same position as long as the base's cache lives, even
 * when a new webhook starts at 1: its numbers continue from those of the previous one. A saved cursor of an older
 * webhook does not move the cursor of a newer one.
 * E2. A gap is durable before the batch that contains it is returned: otherwise the cursor could move past lost
 * changes and no process would know.
 */

import type { Notifier } from "../../../async";
import type { Context } from "../../../context";
import { asBasetideError, BasetideError, type ErrorCode, isBasetideError, nextStep } from "../../../errors";
import { type ChangeBatch, type Platform, platformById } from "../../../source";
import { type Reader, watchAnswers, withPatience } from "../../engine";
import type { FeedStore, Host, NotificationState, SavedFeed, SyncedBase } from "../../host";
import { isOutage, MAX_FAILURE_PAUSE_MS, MOST_PATIENCE_MS, SHORTEST_MS, UNPROMPTED_MS } from "../../pacing";
import type { BaseCache } from "../../state";
import type { Comparisons } from "./comparisons";
import { FeedGap } from "./feed-gap";
import { FeedRecorder } from "./feed-records";
import { type FeedState, feedStateOf } from "./feed-state";
import type { Feed, FeedBatch, FeedFacts } from "./feed-types";
import { NotificationTrust } from "./notification-trust";
import {
  type BaseFeedContext,
  call,
  type FeedWebhook,
  hasOwnAddress,
  refreshInTime,
  repairWebhook,
} from "./webhook";

/** Errors of a read that may mean that the webhook is gone, not visible to the key, or does not know the cursor. */
const WEBHOOK_ERRORS = new Set<ErrorCode>([
  "source_not_found",
  "source_forbidden",
  "source_rejected",
  "source_schema_changed",
]);

export interface FeedContext extends Pick<Context, "config" | "log"> {
  platforms: Platform[];
  host: Pick<Host, "feeds" | "notifier">;
}

/**
 * Opens the base's feed, and creates the webhook if there is none.
 *
 * @returns null if the platform has no feed, the key is not allowed to have one (recorded, and tried again after an
 *   hour or with another key), or the source's feeds are out of order: the base is swept then
 * @throws BasetideError `control_unavailable`, `source_billing_limit`, `sync_stopped`
 */
export async function openFeed(
  ctx: FeedContext,
  base: SyncedBase,
  reader: Reader,
  cache: BaseCache,
): Promise<LiveFeed | null> {
  if (!reader.connection.changeFeed) return null;
  const feedState = feedStateOf(cache);
  if (performance.now() < feedState.outUntil) return null;
  const notifier = ctx.host.notifier(base.id);
  const saved = await ctx.host.feeds.load(base.id);
  if (saved?.isResting) return null;
  const { keyScopes, webhooks } = platformById(ctx.platforms, base.platform);
  if (!webhooks) return null;
  const scope = keyScopes?.changes;
  const feed = new LiveFeed(
    { ctx, base, scope, webhooks, clock: cache.sourceClock },
    feedState,
    notifier,
    saved,
  );
  try {
    return (await withPatience(reader, MOST_PATIENCE_MS, (one) => feed.prepare(one, saved))) ? feed : null;
  } catch (caught) {
    const error = asBasetideError(caught);
    const isOfSource = error.code.startsWith("source_") && error.code !== "source_billing_limit";
    if (isOutage(error) || !(isTransient(error) || isOfSource)) throw error;
    // Records may be readable although webhooks are not.
    ctx.log.warn({ error }, "opening the feed failed; the base is swept meanwhile");
    await feed.giveUp(error.message);
    return null;
  }
}

export class LiveFeed implements Feed {
  #context: BaseFeedContext;
  #feedState: FeedState;
  #notifier: Notifier;
  #trust: NotificationTrust;
  #recorder: FeedRecorder;
  /** Undefined only until `prepare` has set it. */
  #webhook: FeedWebhook | undefined;
  /** The webhook's own number to request next, and the one that is durable. */
  #next = 1;
  #saved = 1;
  #gap = new FeedGap();
  /** Doubt about the webhook until it is checked; when a check was last tried, and last completed. */
  #doubt: "none" | "unsure" | "dead" = "none";
  #triedAt = Number.NEGATIVE_INFINITY;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #refreshAt = Number.NEGATIVE_INFINITY;
  #states: Promise<unknown> = Promise.resolve();
  /** Why the feed cannot be read, or is not answered for. */
  #failure: BasetideError | undefined;
  /** How long the last read took, ms. */
  #tookMs = 0;

  constructor(
    context: BaseFeedContext,
    feedState: FeedState,
    notifier: Notifier,
    saved: SavedFeed | undefined,
  ) {
    this.#context = context;
    this.#feedState = feedState;
    this.#notifier = notifier;
    const { feeds } = context.ctx.host;
    this.#trust = new NotificationTrust(
      notifier,
      () => feeds.addressState(),
      saved?.hasMissedNotification ?? false,
      feedState,
    );
    this.#recorder = new FeedRecorder(context.ctx, context.base.id);
    // A notification arrived while no worker held the base, or got lost on the way here.
    if (saved?.isNotified) notifier.notifyFromWebhook();
    if (saved) this.#adopt(saved);
  }

  get notifications(): NotificationState {
    const isNotified = this.#webhook?.notificationUrl != null && this.#context.ctx.config.livePings !== "off";
    return isNotified ? this.#trust.state : "none";
  }

  get notifiedAt(): number {
    return this.#notifier.notifiedAt;
  }

  get gapSince(): Date | null {
    return this.#gap.since;
  }

  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** If a read takes twice as long as the one before, or as a usual one, scans begin to look for changes. */
  get patienceMs(): number {
    return 2 * Math.max(SHORTEST_MS, this.#tookMs);
  }

  get isSettled(): boolean {
    return !this.isFailing && this.#doubt === "none" && this.#trust.graceMs === Number.POSITIVE_INFINITY;
  }

  get comparisons(): Comparisons {
    return this.#feedState.comparisons;
  }

  /** Prepares the feed for reading. @returns false if the base cannot have one */
  async prepare(reader: Reader, saved: SavedFeed | undefined): Promise<boolean> {
    const isKnown = saved?.webhookId != null && saved.state === "on" && saved.checkedMsAgo < UNPROMPTED_MS;
    if (isKnown && hasOwnAddress(this.#context, saved)) {
      if (saved.isSecretReadable || saved.notificationUrl === null) return true;
      this.#context.ctx.log.warn(
        { webhookId: saved.webhookId },
        "the webhook's secret is unreadable; creating a new webhook",
      );
      this.#doubt = "dead";
    }
    return (await this.#repair(reader, saved)) !== "none";
  }

  async wakeUp(ms: number, signal: AbortSignal): Promise<boolean> {
    const repairMs = this.#doubt === "none" ? ms : MOST_PATIENCE_MS;
    const isNotified = await this.#notifier.wait(Math.min(ms, repairMs, this.#trust.graceMs), signal);
    if (this.#trust.judge() && this.#webhook?.notificationUrl) {
      this.#context.ctx.log.warn(
        { webhookId: this.#webhook.id },
        "a change arrived without a notification; polling the feed until one arrives",
      );
      this.#doubt = "unsure";
      await this.#recorder.record("a missing notification", (feeds, id) =>
        feeds.recordMissedNotification(id),
      );
    }
    return isNotified;
  }

  async read(reader: Reader): Promise<FeedBatch> {
    // While it fails, each try is one request.
    const mayTryAgain = () => !this.isFailing && (reader.mayTryAgain?.() ?? true);
    using watched = watchAnswers({ ...reader, mayTryAgain }, this.patienceMs, (error) => {
      void this.recordFailing(error, 0);
    });
    const askedAt = performance.now();
    const batch = await this.#read(watched.reader);
    this.#tookMs = performance.now() - askedAt;
    if (this.isFailing) await this.#recordReadable();
    return batch;
  }

  async recordFailing(error: BasetideError, retryInMs: number): Promise<void> {
    this.#failure = error;
    await this.#recordState((feeds, baseId) => feeds.recordFailing(baseId, error.message, retryInMs));
  }

  async #recordReadable(): Promise<void> {
    this.#failure = undefined;
    const { id, expiresMs } = this.#webhook!;
    await this.#recordState((feeds, baseId) => feeds.recordHealthy(baseId, id, expiresMs));
  }

  /** One after another: an earlier state must not overwrite a later one. */
  #recordState(record: (feeds: FeedStore, baseId: string) => Promise<void>): Promise<unknown> {
    this.#states = this.#states.then(() => this.#recorder.record("the state of the feed", record));
    return this.#states;
  }

  async #read(reader: Reader): Promise<FeedBatch> {
    for (let attempt = 1; ; attempt++) {
      // What the webhook has recorded can be read although its state cannot.
      const repair = () => (attempt === 1 ? this.#tryRepair(reader) : this.#repairInRead(reader));
      if (this.#isRepairDue() && (await repair())) return this.#lost();
      const { ctx, base } = this.#context;
      const { id } = this.#webhook!;
      const from = this.#next;
      const askedAt = performance.now();
      try {
        await this.#refresh(reader);
        const list: Parameters<typeof call<ChangeBatch>>[1] = (feed, signal) => {
          // Notifications that arrived while this request waited for the quota are covered by its answer.
          this.#notifier.clear();
          return feed.listPayloads(base.sourceBaseId, id, from, signal);
        };
        const batch = await call(reader, list, { kind: "payloads" });
        const cursor = batch.hasGap ? await this.#cursorAfter(reader, batch, from) : batch.cursor;
        return await this.#take(reader, { ...batch, cursor }, from, askedAt);
      } catch (caught) {
        const error = asBasetideError(caught);
        if (!WEBHOOK_ERRORS.has(error.code)) throw error;
        ctx.log.info({ webhookId: id, error }, "reading the feed failed; checking its webhook");
        // The second time, the source has confirmed the webhook and still does not return its payloads.
        this.#doubt = attempt === 1 ? "unsure" : "dead";
        this.#triedAt = Number.NEGATIVE_INFINITY;
        if (attempt > 1) await this.#recordReplacement(error.message);
      }
    }
  }

  async save(cursor: number): Promise<void> {
    const own = Math.min(cursor, this.#feedState.position) - this.#feedState.offset;
    if (!this.#webhook || own <= this.#saved) return;
    const { id } = this.#webhook;
    // Changes after a cursor that was not saved are read again, which changes nothing.
    await this.#recorder.record("the cursor", async (feeds, baseId) => {
      await feeds.saveCursor(baseId, id, own);
      if (this.#webhook?.id === id) this.#saved = Math.max(this.#saved, own);
    });
  }

  async recordDue(at: Date, facts: FeedFacts): Promise<boolean> {
    const { readAt } = this.#feedState;
    return readAt !== undefined && (await this.#recorder.due(readAt, at, facts));
  }

  /** Closes the gap. If that cannot be recorded, the gap stays open: another scan follows. */
  async closeFeedGap(sweptFrom: number): Promise<void> {
    await this.#recorder.record("the end of a feed gap", (feeds, id) =>
      this.#gap.close(sweptFrom, (since) => feeds.closeGap(id, since)),
    );
  }

  /** Leaves the base to sweeps for a while, and records why. */
  async giveUp(why: string): Promise<void> {
    this.#feedState.outUntil = performance.now() + MAX_FAILURE_PAUSE_MS;
    await this.#recorder.record("that the feed is off", (feeds, id) =>
      feeds.recordFailing(id, why, MAX_FAILURE_PAUSE_MS),
    );
  }

  /** Makes the feed be read at once. */
  notify(): void {
    this.#notifier.notify();
  }

  /** Records that SQL equals the source, as far as was compared. */
  async recordInSync(): Promise<void> {
    await this.#recorder.record("a comparison", (feeds, id) => feeds.recordInSync(id));
  }

  /**
   * Records drift: SQL lags behind, and the feed did not report it. The webhook is checked, and replaced if it seems
   * well, though not repeatedly, because drift may have other causes.
   */
  async recordDrift(): Promise<void> {
    const { ctx, base } = this.#context;
    this.#doubt = this.#feedState.replacements === 0 ? "dead" : "unsure";
    this.#triedAt = Number.NEGATIVE_INFINITY;
    if (this.#doubt === "dead") this.#feedState.recordReplacement();
    this.notify();
    await this.#gap.grow(() => ctx.host.feeds.recordDrift(base.id));
  }

  /**
   * Refreshes the webhook in time. If that fails for now, the webhook can still be read, which also postpones its
   * expiry.
   */
  async #refresh(reader: Reader): Promise<void> {
    if (performance.now() < this.#refreshAt) return;
    try {
      this.#webhook = await refreshInTime(this.#context, reader, this.#webhook!);
    } catch (caught) {
      const error = asBasetideError(caught);
      if (WEBHOOK_ERRORS.has(error.code) || !isTransient(error)) throw error;
      this.#refreshAt = performance.now() + MAX_FAILURE_PAUSE_MS;
      this.#context.ctx.log.warn({ error }, "refreshing the webhook failed; retrying later");
    }
  }

  /** Turns an answer into a batch, and makes its gap durable first (E2). */
  async #take(reader: Reader, batch: ChangeBatch, from: number, askedAt: number): Promise<FeedBatch> {
    const { error } = batch;
    const hasGap = batch.hasGap || error !== undefined;
    if (hasGap) await this.#recordFeedGap(error ?? "the cursor was too old");
    if (batch.payloads > 0) {
      this.#trust.found(this.#feedState.readAt ?? askedAt);
      for (const id of batch.changes.tables.keys()) this.comparisons.told(id);
    }
    this.#next = Math.max(from, batch.cursor);
    this.#feedState.readAt = askedAt;
    const { offset } = this.#feedState;
    this.#feedState.reach(this.#next);
    const read: FeedBatch = { ...batch, from: from + offset, cursor: this.#next + offset, hasGap };
    if (error !== undefined) {
      this.#doubt = this.#context.webhooks.endingErrors.has(error) ? "dead" : "unsure";
      if (this.#doubt === "dead") await this.#recordReplacement(`Airtable has ended the webhook: ${error}.`);
      // The repair starts at once, but its failure does not hold back the batch.
      await this.#tryRepair(reader);
    }
    return read;
  }

  /**
   * Returns where the feed continues after a gap. A cursor beyond all payloads that the webhook has recorded is wrong:
   * nothing would ever be found there.
   */
  async #cursorAfter(reader: Reader, { cursor, payloads }: ChangeBatch, from: number): Promise<number> {
    const { base } = this.#context;
    const webhooks = await call(reader, (feed, signal) => feed.listWebhooks(base.sourceBaseId, signal));
    const next = webhooks.find(({ id }) => id === this.#webhook!.id)?.nextCursor;
    return next !== undefined && cursor > next ? from + payloads : cursor;
  }

  /** Returns the batch of a webhook that was lost: nothing was read, and a scan must find the changes. */
  #lost(): FeedBatch {
    const { position } = this.#feedState;
    const changes = { tables: new Map(), tablesCreated: [], tablesDestroyed: [], tablesChanged: [] };
    return { from: position, cursor: position, mightHaveMore: true, payloads: 0, changes, hasGap: true };
  }

  async #recordFeedGap(why: string): Promise<void> {
    const { ctx, base } = this.#context;
    const { id } = this.#webhook!;
    ctx.log.warn({ webhookId: id, why }, "the feed is missing changes; a full check will find them");
    // If another process has replaced the webhook, a new lease must start with that one.
    const since = await ctx.host.feeds.recordGap(base.id, id);
    if (!since) throw new BasetideError("sync_stopped");
    this.#gap.set(since);
  }

  /** @throws BasetideError `sync_stopped` when new webhooks do not help: the base is swept for a while */
  async #recordReplacement(why: string): Promise<void> {
    if (this.#feedState.isReplacedTooOften) {
      await this.giveUp(`New webhooks do not help. ${why}`);
      throw new BasetideError("sync_stopped");
    }
    this.#feedState.recordReplacement();
  }

  #isRepairDue(): boolean {
    const now = performance.now();
    if (this.#doubt !== "none") return now - this.#triedAt >= MOST_PATIENCE_MS;
    return now - this.#checkedAt >= UNPROMPTED_MS;
  }

  /**
   * @returns whether the base has another webhook now
   * @throws BasetideError `sync_stopped` if there can be no feed any more: the next lease finds out what to do instead
   */
  async #repairInRead(reader: Reader): Promise<boolean> {
    const { id } = this.#webhook!;
    const latest = await this.#adoptLatest(id);
    const outcome = latest === "same" ? await this.#repair(reader, { webhookId: id }) : latest;
    if (outcome === "none") throw new BasetideError("sync_stopped");
    return outcome === "other";
  }

  /** The same. If it fails, it is tried again later. */
  async #tryRepair(reader: Reader): Promise<boolean> {
    try {
      return await this.#repairInRead(reader);
    } catch (caught) {
      if (nextStep[asBasetideError(caught).code] === "stop") throw caught;
      this.#triedAt = performance.now();
      this.#context.ctx.log.warn({ error: caught }, "repairing the webhook failed; retrying later");
      return false;
    }
  }

  async #repair(
    reader: Reader,
    saved: Pick<SavedFeed, "webhookId"> | undefined,
  ): Promise<"same" | "other" | "none"> {
    this.#triedAt = performance.now();
    const repaired = await this.#repaired(reader, saved);
    if (!repaired || repaired === "refused") return "none";
    if (repaired === "taken") {
      const latest = await this.#adoptLatest(saved?.webhookId ?? null);
      return latest === "other" ? latest : "none";
    }
    this.#doubt = "none";
    this.#checkedAt = performance.now();
    this.#webhook = repaired.webhook;
    if (!repaired.gapSince) return "same";
    this.#gap.set(repaired.gapSince);
    this.#startAt(1);
    return "other";
  }

  /** @returns null if the source does not find the base's webhooks: that says nothing about the key, and may pass */
  async #repaired(reader: Reader, saved: Pick<SavedFeed, "webhookId"> | undefined) {
    try {
      return await repairWebhook(this.#context, reader, saved, this.#doubt === "dead");
    } catch (error) {
      if (!isBasetideError(error, "source_not_found")) throw error;
      await this.giveUp(`Airtable does not find the webhooks of the base. ${error.message}`);
      return null;
    }
  }

  /**
   * Continues with the webhook that another process has created.
   *
   * @returns `none` if the base no longer has one: live mode is over, or the key was replaced
   */
  async #adoptLatest(ownId: string | null): Promise<"same" | "other" | "none"> {
    const { ctx, base } = this.#context;
    const latest = await ctx.host.feeds.load(base.id);
    if (!latest?.webhookId || latest.isResting) return "none";
    if (latest.webhookId === ownId) return "same";
    this.#adopt(latest);
    this.#doubt = "unsure";
    return "other";
  }

  #adopt(saved: SavedFeed): void {
    const { webhookId, notificationUrl, expiresMs, gapSince, gapMsAgo } = saved;
    this.#gap.set(gapSince, gapMsAgo ?? 0);
    if (webhookId === null) return;
    this.#checkedAt = performance.now() - saved.checkedMsAgo;
    this.#webhook = { id: webhookId, notificationUrl, expiresMs };
    this.#startAt(saved.cursor);
  }

  /** Reads the webhook from its own number `cursor` on (E1). */
  #startAt(cursor: number): void {
    this.#feedState.continueFrom(this.#webhook!.id, cursor);
    this.#next = cursor;
    this.#saved = cursor;
  }
}

function isTransient({ code }: BasetideError): boolean {
  return nextStep[code] === "retry" || nextStep[code] === "wait";
}
