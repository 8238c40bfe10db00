/**
 * A base while a worker holds its lease: connections and settings, kept up to date with changes that people make
 * during the lease.
 *
 * Turbo and a new API key apply from the next request on. A pause or another selection of what is copied ends the
 * lease; a deletion aborts even the current request. Changes that need another sync (according to the table of
 * settings, for example other column types, and Resync) interrupt the running one. Resync and some settings do not
 * interrupt a first sync or a rebuild, which would have to start over.
 */

import { type LinkedAbort, linkedAbort, Notifier } from "../../async";
import type { Context } from "../../context";
import { syncShare } from "../../limiter";
import {
  following,
  type Platform,
  quotaKeyOf,
  type Selecting,
  type SourceConnection,
  selectedSource,
} from "../../source";
import type { Host, SyncedBase, SyncFacts, SyncSettings, Watching } from "../host";
import { MOST_PATIENCE_MS } from "../pacing";
import { type BaseCache, requestSchemaCheck } from "../state";

interface LeaseInput {
  ctx: Pick<Context, "log"> & { host: Pick<Host, "access" | "watch" | "interruptedBy"> };
  base: SyncedBase;
  platform: Platform;
  cache: BaseCache;
  /** The worker's signals. */
  stop: AbortSignal;
  kill: AbortSignal;
}

/** A sync that is running. */
interface RunningSync extends Disposable {
  /** Aborts with `sync_stopped` when the sync must make no further request. */
  stop: AbortSignal;
  /** True while a first sync or a rebuild is running. */
  isBuilding: boolean;
}

export class LeasedBase implements Disposable {
  /** Sends each request with the API key that the base has at that moment. */
  readonly connection: SourceConnection;
  /** Makes the feed be read at once, if there is one. */
  notify: () => void = () => {};
  /** Called while a schema check is requested, once a second. */
  onSchemaCheck: () => void = () => {};
  /** Called when people have changed something, and when a sync begins. */
  onFacts: () => void = () => {};
  #input: LeaseInput;
  #stop: LinkedAbort;
  #kill: LinkedAbort;
  #apiKey: string;
  /** The same during the whole lease: what is cached depends on it. */
  readonly #selecting: Selecting | undefined;
  #keyVersion: string | undefined;
  #connected: SourceConnection;
  /** Requests per window that sync may use. */
  #share: number;
  /** The base as the latest sync read it. */
  #syncedBase: SyncedBase;
  #sync: { abort: LinkedAbort; handle: RunningSync; isForced: boolean } | undefined;
  readonly #changed = new Notifier();
  #watching: Watching;
  /** The timeline of the replica's server when it was first reported. */
  #timeline: string | null = null;
  #facts: SyncFacts | undefined;

  private constructor(input: LeaseInput, apiKey: string, selecting: Selecting | undefined) {
    this.#input = input;
    this.#apiKey = apiKey;
    this.#selecting = selecting;
    this.#connected = this.#connect(apiKey);
    this.connection = following(() => this.#connected);
    this.#share = shareOf(input.base, input.base.settings);
    this.#syncedBase = input.base;
    this.#stop = linkedAbort(input.stop);
    this.#kill = linkedAbort(input.kill);
    this.#watching = input.ctx.host.watch(input.base.id, (facts) => this.#notice(facts));
  }

  /** @throws BasetideError `secret_unreadable`, `not_found` */
  static async open(input: LeaseInput): Promise<LeasedBase> {
    const { ctx, base } = input;
    const { apiKey, selecting } = await ctx.host.access(base);
    return new LeasedBase(input, apiKey, selecting);
  }

  /**
   * True once the base has been paused or deleted, or the worker stopped. No further sync of this lease makes
   * progress.
   */
  get isOver(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Aborts when the lease must end. */
  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  /** Aborts requests that are already being sent. */
  get kill(): AbortSignal {
    return this.#kill.signal;
  }

  get apiKey(): string {
    return this.#apiKey;
  }

  share = (): number => this.#share;

  /** The current settings. */
  get settings(): SyncSettings {
    return this.#facts?.settings ?? this.#syncedBase.settings;
  }

  /** Up to when records must be found that clients wrote, see `catchingUp`; null during a first sync, which finds them. */
  get catchUpRequestedAt(): Date | null {
    if (!this.#syncedBase.sync) return null;
    return this.#facts ? this.#facts.catchUpRequestedAt : this.#syncedBase.catchUpRequestedAt;
  }

  /** Whether a page has shown the progress of a first sync. */
  get isWatched(): boolean {
    return (this.#facts ?? this.#syncedBase).isWatched;
  }

  /** Returns whether nothing that people may change differed from `base` when that was last read. */
  isAsRead(base: SyncedBase): boolean {
    return isAsRead(base, this.#facts, performance.now() - this.#watching.readAt);
  }

  /** Begins a sync with `base` as it was just read. */
  begin(base: SyncedBase, isForced: boolean): RunningSync {
    this.#share = shareOf(base, base.settings);
    this.#syncedBase = base;
    // What is known by now may interrupt this sync, or make another one worthwhile after it.
    this.#watching.callAgain();
    this.onFacts();
    const abort = linkedAbort(this.#stop.signal);
    const handle: RunningSync = {
      stop: abort.signal,
      isBuilding: false,
      [Symbol.dispose]: () => {
        abort[Symbol.dispose]();
        this.#sync = undefined;
        this.#watching.callAgain();
      },
    };
    this.#sync = { abort, handle, isForced };
    return handle;
  }

  /**
   * Waits `ms`, or until a change makes another sync worthwhile.
   *
   * @throws BasetideError `sync_stopped`
   */
  async rest(ms: number): Promise<void> {
    this.#changed.clear();
    await this.#changed.wait(ms, this.#stop.signal);
  }

  [Symbol.dispose](): void {
    this.#watching[Symbol.dispose]();
    this.#stop[Symbol.dispose]();
    this.#kill[Symbol.dispose]();
  }

  /** @returns whether to call again although nothing changes */
  #notice(facts: SyncFacts | undefined): boolean {
    this.#facts = facts;
    if (!facts || facts.state === "deleting" || facts.state === "moving" || facts.state === "paused") {
      this.#stop.abort();
      if (facts?.state !== "paused") this.#kill.abort();
      return false;
    }
    this.#timeline ??= facts.timeline;
    const { ctx, base, cache } = this.#input;
    const why =
      (facts.databaseId !== base.database.id && "the base has moved to another database") ||
      (!Bun.deepEquals(facts.selection, base.selection) && "the selection of what is copied has changed") ||
      (this.#timeline !== facts.timeline && "the replica's server failed over");
    if (why) {
      ctx.log.info({ baseId: facts.id, why }, "lease ended");
      this.#stop.abort();
      return false;
    }
    this.#share = shareOf(base, facts.settings);
    requestSchemaCheck(cache, facts.schemaCheckRequestedAt);
    if (cache.schemaCheckRequestedAt) this.onSchemaCheck();
    this.onFacts();
    void this.#applyKey(facts.keyVersion);
    if (this.#sync && this.#isInterrupting(facts)) {
      ctx.log.info({ baseId: facts.id }, "sync interrupted by a change of settings");
      this.#sync.abort.abort();
    }
    if (!this.#sync && isLater(facts.resyncRequestedAt, this.#syncedBase.resyncRequestedAt)) {
      this.#changed.notify();
    }
    return facts.schemaCheckRequestedAt !== null;
  }

  #isInterrupting({ settings, resyncRequestedAt, attachmentKeyVersion }: SyncFacts): boolean {
    const { handle, isForced } = this.#sync!;
    const interrupted = this.#input.ctx.host.interruptedBy(this.#syncedBase.settings, settings);
    if (interrupted === "every sync") return true;
    if (settings.ownAttachmentUrls && attachmentKeyVersion !== this.#syncedBase.attachmentKeyVersion)
      return true;
    if (handle.isBuilding) return false;
    return (
      interrupted === "updates" ||
      (!isForced && isLater(resyncRequestedAt, this.#syncedBase.resyncRequestedAt))
    );
  }

  #connect(apiKey: string): SourceConnection {
    const { platform, cache } = this.#input;
    return selectedSource(platform.connect(apiKey, cache.sourceClock), this.#selecting);
  }

  /** Connects with a new key. The first version that is seen is assumed to belong to the current key. */
  async #applyKey(version: string): Promise<void> {
    if (version === this.#keyVersion) return;
    const isFirst = this.#keyVersion === undefined;
    this.#keyVersion = version;
    const { ctx, base } = this.#input;
    try {
      const { apiKey } = await ctx.host.access(base);
      if (apiKey === this.#apiKey) return;
      this.#apiKey = apiKey;
      this.#connected = this.#connect(apiKey);
      this.#changed.notify();
      this.notify();
      if (!isFirst) ctx.log.info({ baseId: base.id }, "API key replaced");
    } catch (error) {
      this.#keyVersion = undefined;
      this.#watching.callAgain();
      ctx.log.warn({ baseId: base.id, error }, "reading the new API key failed");
    }
  }
}

function shareOf(base: SyncedBase, { turbo }: Pick<SyncSettings, "turbo">): number {
  return syncShare(quotaKeyOf(base), turbo);
}

function isLater(one: Date | null, other: Date | null): boolean {
  return one !== null && (other === null || one > other);
}

/** What people may change, of a base as it was read or as its syncs left it. */
type Changeable = Pick<
  SyncedBase,
  "state" | "settings" | "database" | "resyncRequestedAt" | "attachmentKeyVersion"
>;

/**
 * Decides whether a base must be read again before its next sync. One query for all bases of the worker finds what
 * people have changed (`SettingsWatch`); everything else about a base is changed by its own syncs.
 *
 * While a base is synced, facts are read every second. Old ones mean that the base was at rest, that the control plane
 * does not answer, or that this process was held up.
 *
 * Returns whether the facts show nothing that differs from `base`. A change after they were read interrupts the sync
 * that is running then, if it must.
 *
 * @param factsAgeMs how long ago the facts arrived
 */
export function isAsRead(base: Changeable, facts: SyncFacts | undefined, factsAgeMs: number): boolean {
  return (
    facts !== undefined &&
    factsAgeMs <= MOST_PATIENCE_MS &&
    facts.state === base.state &&
    facts.databaseId === base.database.id &&
    facts.attachmentKeyVersion === base.attachmentKeyVersion &&
    facts.resyncRequestedAt?.getTime() === base.resyncRequestedAt?.getTime() &&
    Bun.deepEquals(facts.settings, base.settings)
  );
}
