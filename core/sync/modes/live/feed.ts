/**
 * The feed of a base as its lease reads it: a hook that is kept alive, pings, and a durable cursor.
 *
 * E1. A number that the engine sees (`from`, `cursor`) means the same place for as long as its memory of the base lasts,
 *     also when a new hook begins again with 1: its numbers go on from those of the one before. What is saved of an
 *     older hook's numbers does not move a newer one's cursor.
 * E2. A gap is durable before the batch that has it is handed out: the cursor cannot move past what is lost and leave
 *     nobody to know.
 */

import type { Bell } from "../../../async";
import type { Context } from "../../../context";
import type { Base } from "../../../control/bases";
import {
  closeGap,
  type KeptFeed,
  loadFeed,
  noteFresh,
  noteGap,
  noteStale,
  noteUnpinged,
  saveCursor,
} from "../../../control/feeds";
import { asBasetideError, BasetideError, type ErrorCode, nextStep } from "../../../errors";
import { type ChangeBatch, type Platform, platformById } from "../../../source";
import type { Reader } from "../../engine";
import { isOutage } from "../../pacing";
import type { BaseMemory } from "../../state";
import type { Comparisons } from "./comparisons";
import { FeedGap } from "./feed-gap";
import { FeedNotes } from "./feed-records";
import { type Carried, carriedBy } from "./feed-state";
import type { Feed, FeedBatch, FeedFacts } from "./feed-types";
import { PingTrust } from "./notification-trust";
import type { PingWatch } from "./notifications";
import { call, type Hook, hasOwnAddress, isReadable, type Keeping, mendHook, refreshInTime } from "./webhook";

/** The source is asked how the hook is this often, whatever happens. */
const CHECK_MS = 6 * 3600_000;
/** What is wrong with the hook is tried to be mended this often, where the first try failed. */
const MEND_RETRY_MS = 5000;
/** The same for its end that is to be put off, of which there are days left. */
const REFRESH_RETRY_MS = 10 * 60_000;
/** While the source's feeds are out of order, the base is swept for so long before they are tried again. */
const OUTAGE_MS = 60_000;
/** Reads in a row that may fail, each after the usual tries. */
const MAX_READ_FAILURES = 2;
/** Errors of a read that may mean that the hook is gone, not the key's to see, or does not know the cursor. */
const HOOK_ERRORS = new Set<ErrorCode>([
  "source_not_found",
  "source_forbidden",
  "source_rejected",
  "source_schema_changed",
]);

export interface FeedContext extends Pick<Context, "config" | "db" | "log" | "secrets"> {
  platforms: Platform[];
  pings: PingWatch;
}

/**
 * Opens the base's feed, making the hook where there is none.
 *
 * @returns null where the platform has no feed, the key may have none (noted, and tried again after an hour or with
 *   another key), or the source's feeds are out of order: the base is to be swept
 * @throws BasetideError `source_key_refused`, `control_unavailable`, `sync_stopped`
 */
export async function openFeed(
  ctx: FeedContext,
  base: Base,
  reader: Reader,
  memory: BaseMemory,
): Promise<LiveFeed | null> {
  if (!reader.connection.changeFeed) return null;
  const carried = carriedBy(memory);
  if (performance.now() < carried.outUntil) return null;
  const bell = ctx.pings.bell(base.id);
  const kept = await loadFeed(ctx.db, base.id);
  if (kept?.isResting) return null;
  const { keyScopes, webhooks } = platformById(ctx.platforms, base.platform);
  if (!webhooks) return null;
  const scope = keyScopes?.changes;
  const feed = new LiveFeed({ ctx, base, scope, webhooks, clock: memory.sourceClock }, carried, bell, kept);
  try {
    return (await feed.prepare(reader, kept)) ? feed : null;
  } catch (caught) {
    const error = asBasetideError(caught);
    if (isOutage(error) || !isPassing(error)) throw error;
    // Records may be there to be read though hooks are not.
    carried.outUntil = performance.now() + OUTAGE_MS;
    ctx.log.warn({ error }, "feed not opened; the base is swept meanwhile");
    return null;
  }
}

export class LiveFeed implements Feed {
  #keeping: Keeping;
  #carried: Carried;
  #bell: Bell;
  #trust: PingTrust;
  #notes: FeedNotes;
  /** Absent only until `prepare` has made it. */
  #hook: Hook | undefined;
  /** The hook's own number to ask for next, and the one that is durable. */
  #next = 1;
  #saved = 1;
  #gap = new FeedGap();
  /** What is to be thought of the hook until it is looked after; when that was last tried, and last done. */
  #doubt: "none" | "unsure" | "dead" = "none";
  #triedAt = Number.NEGATIVE_INFINITY;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #refreshAt = Number.NEGATIVE_INFINITY;
  #failures = 0;

  constructor(keeping: Keeping, carried: Carried, bell: Bell, kept: KeptFeed | undefined) {
    this.#keeping = keeping;
    this.#carried = carried;
    this.#bell = bell;
    this.#trust = new PingTrust(bell, kept?.hasPings ?? false);
    this.#notes = new FeedNotes(keeping.ctx, keeping.base.id);
    // Pinged while nobody had the base, or by a notification that was lost.
    if (kept?.isPinged) bell.ping();
    if (kept) this.#adopt(kept);
  }

  get hasPings(): boolean {
    const isPinged = this.#hook?.notificationUrl != null && this.#keeping.ctx.config.livePings !== "off";
    return isPinged && this.#trust.isTrusted;
  }

  get gapSince(): Date | null {
    return this.#gap.since;
  }

  get gapAgoMs(): number {
    return this.#gap.agoMs;
  }

  get comparisons(): Comparisons {
    return this.#carried.comparisons;
  }

  /** Makes the feed ready to be read. @returns false where there is to be none */
  async prepare(reader: Reader, kept: KeptFeed | undefined): Promise<boolean> {
    const isKnown = kept?.hookId != null && kept.state === "on" && kept.checkedMsAgo < CHECK_MS;
    if (isKnown && hasOwnAddress(this.#keeping, kept)) {
      if (isReadable(this.#keeping, kept)) return true;
      this.#keeping.ctx.log.warn(
        { hookId: kept.hookId },
        "the hook's secret is not readable: it is made anew",
      );
      this.#doubt = "dead";
    }
    return (await this.#mend(reader, kept)) !== "none";
  }

  async wakeUp(ms: number, signal: AbortSignal): Promise<boolean> {
    const mendMs = this.#doubt === "none" ? ms : MEND_RETRY_MS;
    const isRung = await this.#bell.wait(Math.min(ms, mendMs, this.#trust.graceMs), signal);
    if (this.#trust.judge() && this.#hook?.notificationUrl) {
      const { ctx, base } = this.#keeping;
      ctx.log.warn(
        { hookId: this.#hook.id },
        "a change came without a ping: the feed is polled until one comes",
      );
      this.#doubt = "unsure";
      await this.#notes.tell("missing ping not noted", () => noteUnpinged(ctx.db, base.id));
    }
    return isRung;
  }

  async read(reader: Reader): Promise<FeedBatch> {
    for (let attempt = 1; ; attempt++) {
      if (this.#isToBeMended() && (await this.#mendInRead(reader))) return this.#lost();
      const { ctx, base } = this.#keeping;
      const { id } = this.#hook!;
      const from = this.#next;
      const askedAt = performance.now();
      try {
        await this.#refresh(reader);
        const list: Parameters<typeof call<ChangeBatch>>[1] = (feed, signal) => {
          // Whatever was pinged while this waited for its place is in the answer.
          this.#bell.clear();
          return feed.listPayloads(base.sourceBaseId, id, from, signal);
        };
        const batch = await call(reader, list, { kind: "payloads" });
        return await this.#take(reader, batch, from, askedAt);
      } catch (caught) {
        const error = asBasetideError(caught);
        if (!HOOK_ERRORS.has(error.code)) throw this.#failed(error);
        ctx.log.info({ hookId: id, error }, "feed not read: its hook is looked after");
        // The second time the source says that the hook is well, and yet does not give what is in it.
        this.#doubt = attempt === 1 ? "unsure" : "dead";
        this.#triedAt = Number.NEGATIVE_INFINITY;
        if (attempt > 1) this.#noteRemake();
      }
    }
  }

  async save(cursor: number): Promise<void> {
    const own = Math.min(cursor, this.#carried.position) - this.#carried.offset;
    if (!this.#hook || own <= this.#saved) return;
    const { ctx, base } = this.#keeping;
    const { id } = this.#hook;
    // What is not saved is read again, which changes nothing.
    await this.#notes.tell("cursor not saved", async () => {
      await saveCursor(ctx.db, base.id, id, own);
      if (this.#hook?.id === id) this.#saved = Math.max(this.#saved, own);
    });
  }

  async noteDue(at: Date, facts: FeedFacts): Promise<void> {
    const { readAt } = this.#carried;
    if (readAt !== undefined) await this.#notes.due(readAt, at, facts);
  }

  addMissed(count: number): Promise<void> {
    return this.#notes.missed(count);
  }

  /** A gap whose end cannot be noted stays: another sweep follows. */
  async closeGap(sweptFrom: number): Promise<void> {
    const { ctx, base } = this.#keeping;
    await this.#notes.tell("gap not closed", () =>
      this.#gap.close(sweptFrom, (since) => closeGap(ctx.db, base.id, since)),
    );
  }

  /** Has the feed read at once. */
  poke(): void {
    this.#bell.ring();
  }

  /** SQL shows what the source has, as far as was compared. */
  async noteFresh(): Promise<void> {
    const { ctx, base } = this.#keeping;
    await this.#notes.tell("comparison not noted", () => noteFresh(ctx.db, base.id));
  }

  /**
   * SQL lags behind, and the feed told nothing of it: its hook is looked after, and made anew if it seems well, though
   * not again and again for what may have other reasons.
   */
  async noteStale(): Promise<void> {
    const { ctx, base } = this.#keeping;
    this.#doubt = this.#carried.remakes === 0 ? "dead" : "unsure";
    this.#triedAt = Number.NEGATIVE_INFINITY;
    if (this.#doubt === "dead") this.#carried.noteRemake();
    this.poke();
    await this.#gap.grow(() => noteStale(ctx.db, base.id));
  }

  /** A hook that cannot be refreshed just now can be read, which puts off its end as well. */
  async #refresh(reader: Reader): Promise<void> {
    if (performance.now() < this.#refreshAt) return;
    try {
      this.#hook = await refreshInTime(this.#keeping, reader, this.#hook!);
    } catch (caught) {
      const error = asBasetideError(caught);
      if (HOOK_ERRORS.has(error.code) || !isPassing(error)) throw error;
      this.#refreshAt = performance.now() + REFRESH_RETRY_MS;
      this.#keeping.ctx.log.warn({ error }, "hook not refreshed yet");
    }
  }

  /** What came of a read, with its gap durable (E2). */
  async #take(reader: Reader, batch: ChangeBatch, from: number, askedAt: number): Promise<FeedBatch> {
    const { error } = batch;
    const hasGap = batch.hasGap || error !== undefined;
    if (hasGap) await this.#noteGap(error ?? "the cursor was too old");
    if (batch.payloads > 0) {
      this.#trust.found(this.#carried.readAt ?? askedAt);
      for (const id of batch.changes.tables.keys()) this.comparisons.told(id);
    }
    this.#next = Math.max(from, batch.cursor);
    this.#carried.readAt = askedAt;
    this.#failures = 0;
    const { offset } = this.#carried;
    this.#carried.reach(this.#next);
    const read: FeedBatch = { ...batch, from: from + offset, cursor: this.#next + offset, hasGap };
    if (error !== undefined) {
      this.#doubt = this.#keeping.webhooks.endingErrors.has(error) ? "dead" : "unsure";
      if (this.#doubt === "dead") this.#noteRemake();
      // At once if possible; what was read is not held back for it.
      await this.#mendInRead(reader).catch((caught: unknown) => {
        if (nextStep[asBasetideError(caught).code] === "stop") throw caught;
        this.#keeping.ctx.log.warn({ error: caught }, "hook not mended yet");
      });
    }
    return read;
  }

  /** The batch of a hook that was lost: nothing was read, and a sweep has to find what changed. */
  #lost(): FeedBatch {
    const { position } = this.#carried;
    const changes = { tables: new Map(), tablesCreated: [], tablesDestroyed: [], tablesChanged: [] };
    return { from: position, cursor: position, mightHaveMore: true, payloads: 0, changes, hasGap: true };
  }

  async #noteGap(why: string): Promise<void> {
    const { ctx, base } = this.#keeping;
    const { id } = this.#hook!;
    ctx.log.warn({ hookId: id, why }, "changes are missing from the feed: a sweep has to find them");
    // Another process has put another hook in its place: a lease that begins anew goes by that.
    const since = await noteGap(ctx.db, base.id, id);
    if (!since) throw new BasetideError("sync_stopped");
    this.#gap.set(since);
  }

  /** @throws BasetideError `sync_stopped` when new hooks do not help: the base is swept for a while */
  #noteRemake(): void {
    if (this.#carried.isRemakingTooOften) {
      this.#carried.outUntil = performance.now() + OUTAGE_MS;
      throw new BasetideError("sync_stopped");
    }
    this.#carried.noteRemake();
  }

  #isToBeMended(): boolean {
    const now = performance.now();
    if (this.#doubt !== "none") return now - this.#triedAt >= MEND_RETRY_MS;
    return now - this.#checkedAt >= CHECK_MS;
  }

  /**
   * @returns whether it is another hook now
   * @throws BasetideError `sync_stopped` where there is to be no feed any more: the next lease knows what to do instead
   */
  async #mendInRead(reader: Reader): Promise<boolean> {
    const { id } = this.#hook!;
    const latest = await this.#adoptLatest(id);
    const outcome = latest === "same" ? await this.#mend(reader, { hookId: id }) : latest;
    if (outcome === "none") throw new BasetideError("sync_stopped");
    return outcome === "other";
  }

  async #mend(
    reader: Reader,
    kept: Pick<KeptFeed, "hookId"> | undefined,
  ): Promise<"same" | "other" | "none"> {
    this.#triedAt = performance.now();
    const mended = await mendHook(this.#keeping, reader, kept, this.#doubt === "dead");
    if (mended.is === "refused") return "none";
    if (mended.is === "taken") {
      const latest = await this.#adoptLatest(kept?.hookId ?? null);
      return latest === "other" ? latest : "none";
    }
    this.#doubt = "none";
    this.#checkedAt = performance.now();
    this.#hook = mended.hook;
    if (mended.is === "well") return "same";
    this.#gap.set(mended.gapSince);
    this.#startAt(1);
    return "other";
  }

  /**
   * Goes on with the hook that another process has made.
   *
   * @returns `none` where the base has none any more: live mode is over, or its key another
   */
  async #adoptLatest(ownId: string | null): Promise<"same" | "other" | "none"> {
    const { ctx, base } = this.#keeping;
    const latest = await loadFeed(ctx.db, base.id);
    if (!latest?.hookId || latest.isResting) return "none";
    if (latest.hookId === ownId) return "same";
    this.#adopt(latest);
    this.#doubt = "unsure";
    return "other";
  }

  #adopt(kept: KeptFeed): void {
    const { hookId, notificationUrl, expiresMs, gapSince, gapMsAgo } = kept;
    this.#gap.set(gapSince, gapMsAgo ?? 0);
    if (hookId === null) return;
    this.#checkedAt = performance.now() - kept.checkedMsAgo;
    this.#hook = { id: hookId, notificationUrl, expiresMs };
    this.#startAt(kept.cursor);
  }

  /** Reads the hook from its own number `cursor` on (E1). */
  #startAt(cursor: number): void {
    this.#carried.follow(this.#hook!.id, cursor);
    this.#next = cursor;
    this.#saved = cursor;
  }

  /** Feeds that are out of order for long leave the base to sweeps. */
  #failed(error: BasetideError): BasetideError {
    if (isPassing(error) && !isOutage(error) && ++this.#failures >= MAX_READ_FAILURES)
      this.#carried.outUntil = performance.now() + OUTAGE_MS;
    return error;
  }
}

function isPassing({ code }: BasetideError): boolean {
  return nextStep[code] === "retry" || nextStep[code] === "wait";
}
