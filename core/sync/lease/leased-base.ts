/**
 * A base while a lease holds it: what its syncs go by, kept in line with what people change meanwhile.
 *
 * Turbo and a new API key are there for the next request. A pause ends the sync, a deletion even the request in hand.
 * What only another sync can do (by the table of settings, e.g. other column types; and "sync now") interrupts the one
 * that is running; but "sync now" and some settings leave a first sync or a rebuild alone, which would have to begin
 * again.
 */

import { type LinkedAbort, linkedAbort, wait } from "../../async";
import type { Context } from "../../context";
import { type Base, interruptedBy, openApiKey, type SyncFacts } from "../../control/bases";
import { quotaKeyOf } from "../../control/budgets";
import { syncShare } from "../../limiter";
import type { Platform, SourceConnection } from "../../source";
import { following } from "../../source";
import { type BaseCache, requestSchemaCheck } from "../state";
import type { SettingsWatch } from "./settings-watch";

interface LeaseInput {
  ctx: Pick<Context, "db" | "secrets" | "log">;
  base: Base;
  platform: Platform;
  cache: BaseCache;
  watch: SettingsWatch;
  /** The worker's. */
  stop: AbortSignal;
  kill: AbortSignal;
}

/** A sync that is running. */
export interface RunningSync extends Disposable {
  /** Aborts, with `sync_stopped`, when it is to make no further request. */
  stop: AbortSignal;
  /** A first sync or a rebuild is under way. */
  isBuilding: boolean;
}

export class LeasedBase implements Disposable {
  /** Requests by whatever key the base has at that moment. */
  readonly connection: SourceConnection;
  /** Has the feed read at once, where there is one. */
  notify: () => void = () => {};
  /** Told once a second when clients last wrote what has to be found. */
  onCatchUp: (requestedAt: Date | null) => void = () => {};
  /** Told once a second of the settings as they are. */
  onSettings: (settings: SyncFacts["settings"]) => void = () => {};
  #input: LeaseInput;
  #stop: LinkedAbort;
  #kill: LinkedAbort;
  #apiKey: string;
  #keyVersion: string | undefined;
  #connected: SourceConnection;
  #isTurbo: boolean;
  /** What the latest sync went by. */
  #goesBy: Base;
  #sync: { abort: LinkedAbort; handle: RunningSync; isForced: boolean } | undefined;
  #changed = Promise.withResolvers<void>();
  #watching: Disposable;
  /** Of the replica's server, when it was first told. */
  #timeline: string | null = null;

  private constructor(input: LeaseInput, apiKey: string) {
    this.#input = input;
    this.#apiKey = apiKey;
    this.#connected = input.platform.connect(apiKey, input.cache.sourceClock);
    this.connection = following(() => this.#connected);
    this.#isTurbo = input.base.settings.turbo;
    this.#goesBy = input.base;
    this.#stop = linkedAbort(input.stop);
    this.#kill = linkedAbort(input.kill);
    this.#watching = input.watch.watch(input.base.id, (facts) => this.#notice(facts));
  }

  /** @throws BasetideError `secret_unreadable`, `not_found` */
  static async open(input: LeaseInput): Promise<LeasedBase> {
    return new LeasedBase(input, await openApiKey(input.ctx, input.base));
  }

  /** Has the base been paused, deleted, or the worker stopped? Then no further sync of this lease gets far. */
  get isOver(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Aborts when the lease is to end. */
  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  /** Aborts what is in hand. */
  get kill(): AbortSignal {
    return this.#kill.signal;
  }

  get apiKey(): string {
    return this.#apiKey;
  }

  share = (): number => syncShare(quotaKeyOf(this.#input.base), this.#isTurbo);

  /** Begins a sync that goes by `base` as it was read just now. */
  begin(base: Base, isForced: boolean): RunningSync {
    this.#isTurbo = base.settings.turbo;
    this.#goesBy = base;
    const abort = linkedAbort(this.#stop.signal);
    const handle: RunningSync = {
      stop: abort.signal,
      isBuilding: false,
      [Symbol.dispose]: () => {
        abort[Symbol.dispose]();
        this.#sync = undefined;
      },
    };
    this.#sync = { abort, handle, isForced };
    return handle;
  }

  /**
   * Waits `ms`, or until something has changed that a sync may be the better for.
   *
   * @throws BasetideError `sync_stopped`
   */
  async rest(ms: number): Promise<void> {
    using rest = linkedAbort(this.#stop.signal);
    this.#changed = Promise.withResolvers();
    const waiting = wait(ms, rest.signal);
    waiting.catch(() => {});
    await Promise.race([waiting, this.#changed.promise]);
    rest.abort();
  }

  [Symbol.dispose](): void {
    this.#watching[Symbol.dispose]();
    this.#stop[Symbol.dispose]();
    this.#kill[Symbol.dispose]();
  }

  #notice(facts: SyncFacts | undefined): void {
    if (!facts || facts.state === "deleting" || facts.state === "paused") {
      this.#stop.abort();
      if (facts?.state !== "paused") this.#kill.abort();
      return;
    }
    if (facts.databaseId !== this.#input.base.database.id) {
      this.#stop.abort();
      return;
    }
    this.#timeline ??= facts.timeline;
    if (this.#timeline !== facts.timeline) {
      this.#input.ctx.log.warn({ baseId: facts.id }, "lease ended: the replica's server has failed over");
      this.#stop.abort();
      return;
    }
    this.#isTurbo = facts.settings.turbo;
    this.onSettings(facts.settings);
    const { cache } = this.#input;
    requestSchemaCheck(cache, facts.schemaCheckRequestedAt);
    this.onCatchUp(facts.catchUpRequestedAt);
    void this.#applyKey(facts.keyVersion);
    if (this.#sync && this.#isInterrupting(facts)) {
      this.#input.ctx.log.info({ baseId: facts.id }, "sync interrupted by a change of its settings");
      this.#sync.abort.abort();
    }
    if (!this.#sync && isLater(facts.resyncRequestedAt, this.#goesBy.resyncRequestedAt)) {
      this.#changed.resolve();
    }
  }

  #isInterrupting({ settings, resyncRequestedAt, attachmentKeyVersion }: SyncFacts): boolean {
    const { handle, isForced } = this.#sync!;
    const interrupted = interruptedBy(this.#goesBy.settings, settings);
    if (interrupted === "every sync") return true;
    if (settings.ownAttachmentUrls && attachmentKeyVersion !== this.#goesBy.attachmentKeyVersion) return true;
    if (handle.isBuilding) return false;
    return (
      interrupted === "updates" || (!isForced && isLater(resyncRequestedAt, this.#goesBy.resyncRequestedAt))
    );
  }

  /** Connects with a new key. The first version that is seen is taken for that of the key at hand. */
  async #applyKey(version: string): Promise<void> {
    if (version === this.#keyVersion) return;
    const isFirst = this.#keyVersion === undefined;
    this.#keyVersion = version;
    const { ctx, base, platform, cache } = this.#input;
    try {
      const apiKey = await openApiKey(ctx, base);
      if (apiKey === this.#apiKey) return;
      this.#apiKey = apiKey;
      this.#connected = platform.connect(apiKey, cache.sourceClock);
      this.#changed.resolve();
      this.notify();
      if (!isFirst) ctx.log.info({ baseId: base.id }, "API key replaced");
    } catch (error) {
      this.#keyVersion = undefined;
      ctx.log.warn({ baseId: base.id, error }, "new API key not read");
    }
  }
}

function isLater(one: Date | null, other: Date | null): boolean {
  return one !== null && (other === null || one > other);
}
