/**
 * Informs leases of changes that people make to their bases while a sync is running: settings, the API key, a pause, a
 * deletion, a requested sync or schema check.
 *
 * One query for all bases that a worker holds reads in which groups of them rows have changed: nearly none, where bases
 * are at rest. The rows of those groups are then compared one by one. Runs change them as well: a third query shows
 * which rows were changed by people. A base in a group without changes costs the worker nothing: it may hold thousands.
 *
 * Triggers of the tables notify the workers of changes that are no runs. The query follows within a second, and without a
 * notification every ten: one may get lost.
 */
import type { Context } from "../../context";
import { arrayOf } from "../../postgres";
import type { OnFacts, SyncFacts, Watching } from "../../sync/host";
import {
  type SyncVersion,
  syncFactHashes,
  syncFacts,
  syncVersionDigests,
  syncVersions,
  versionGroupOf,
} from "./sync-facts";

const POLL_MS = 1000;
/** Of so many polls only the last is made if no change was notified, and no watcher waits for one. */
const RARELY = 10;
/** Triggers of `bases` and `clusters` notify it. */
const CHANNEL = "basetide_facts";

interface Watcher {
  baseId: string;
  onFacts: OnFacts;
  /** To be called after the next read. */
  isQueued: boolean;
  isOver: boolean;
}

interface Known {
  version: SyncVersion;
  /** Undefined: the base was deleted meanwhile, or has just been created. */
  hash: string | undefined;
  facts: SyncFacts;
}

export class SettingsWatch {
  #ctx: Pick<Context, "db" | "log">;
  #pollMs: number;
  /** By base id. */
  #watched = new Map<string, Set<Watcher>>();
  /** The watched bases of each group. */
  #groups = new Map<string, Set<string>>();
  /** All watched bases, as a parameter of statements; undefined once it must be formatted again. */
  #ids: string | undefined;
  /** Watched bases that have not been read yet. */
  #unread = new Set<string>();
  /** Watchers to call after the next read. Not a Set: see "Sets and Maps that many requests pass through" in docs/performance.md. */
  #queued: Watcher[] = [];
  /** What was read last of each watched base. */
  #known = new Map<string, Known>();
  /** Of the groups of these bases, from before they were read. */
  #digests = new Map<string, string>();
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the last poll began, performance.now(). */
  #polledAt = 0;
  /** Since then, a change was notified. */
  #isNotified = false;
  #isPolling = false;
  #listening: Promise<unknown> | undefined;

  constructor(ctx: Pick<Context, "db" | "log">, pollMs = POLL_MS) {
    this.#ctx = ctx;
    this.#pollMs = pollMs;
  }

  watch(baseId: string, onFacts: OnFacts): Watching {
    const watcher: Watcher = { baseId, onFacts, isQueued: false, isOver: false };
    const watchers = this.#watched.get(baseId) ?? this.#add(baseId);
    watchers.add(watcher);
    if (!this.#timer) this.#polledAt = performance.now();
    this.#enqueue(watcher);
    const readAt = () => (this.#unread.has(baseId) ? Number.NEGATIVE_INFINITY : this.#readAt);
    return {
      get readAt() {
        return readAt();
      },
      callAgain: () => this.#enqueue(watcher),
      [Symbol.dispose]: () => {
        watcher.isOver = true;
        if (watchers.delete(watcher) && watchers.size === 0) this.#remove(baseId);
      },
    };
  }

  #add(baseId: string): Set<Watcher> {
    const watchers = new Set<Watcher>();
    this.#watched.set(baseId, watchers);
    this.#groups.getOrInsertComputed(versionGroupOf(baseId), () => new Set()).add(baseId);
    this.#unread.add(baseId);
    this.#ids = undefined;
    return watchers;
  }

  #remove(baseId: string): void {
    const group = versionGroupOf(baseId);
    const bases = this.#groups.get(group)!;
    bases.delete(baseId);
    if (bases.size === 0) this.#groups.delete(group);
    this.#watched.delete(baseId);
    this.#unread.delete(baseId);
    this.#known.delete(baseId);
    this.#ids = undefined;
  }

  /** Sets the time of the next poll, which may have become earlier. */
  #schedule(): void {
    clearTimeout(this.#timer);
    const polls = this.#isNotified || this.#queued.length > 0 ? 1 : RARELY;
    const atMs = this.#polledAt + polls * this.#pollMs;
    this.#timer = setTimeout(
      async () => {
        await this.#poll();
        this.#timer = undefined;
        if (this.#watched.size > 0) this.#schedule();
      },
      Math.max(0, atMs - performance.now()),
    );
  }

  async #poll(): Promise<void> {
    if (this.#watched.size === 0) return;
    this.#listen();
    this.#polledAt = performance.now();
    this.#isNotified = false;
    this.#isPolling = true;
    try {
      await this.#read();
    } catch (error) {
      this.#ctx.log.debug({ error }, "reading settings failed");
    }
    this.#isPolling = false;
  }

  /** Listens once per process. If that fails, the next poll tries again. */
  #listen(): void {
    const notified = () => {
      this.#isNotified = true;
      if (this.#timer && !this.#isPolling) this.#schedule();
    };
    this.#listening ??= this.#ctx.db.listen(CHANNEL, notified, notified).catch((error: unknown) => {
      this.#ctx.log.warn({ error }, "listening for changes of settings failed");
      this.#listening = undefined;
    });
  }

  async #read(): Promise<void> {
    this.#ids ??= arrayOf([...this.#watched.keys()], String);
    // What is watched from here on is read the next time.
    const unread = [...this.#unread];
    const digests = await syncVersionDigests(this.#ctx.db, this.#ids);
    const suspected = new Set(unread);
    for (const [group, bases] of this.#groups)
      if (digests.get(group) !== this.#digests.get(group)) for (const id of bases) suspected.add(id);
    const now = suspected.size > 0 ? await this.#compare([...suspected]) : new Map<string, Known>();
    this.#digests = digests;
    this.#readAt = performance.now();
    for (const id of unread) this.#unread.delete(id);
    for (const id of suspected) this.#learn(id, now.get(id));
    this.#notifyQueued();
  }

  #learn(id: string, known: Known | undefined): void {
    const watchers = this.#watched.get(id);
    if (!watchers) return;
    const before = this.#known.get(id);
    if (known) this.#known.set(id, known);
    else this.#known.delete(id);
    if (before?.facts !== known?.facts) for (const watcher of watchers) this.#enqueue(watcher);
  }

  #enqueue(watcher: Watcher): void {
    if (watcher.isQueued) return;
    watcher.isQueued = true;
    this.#queued.push(watcher);
    // The first that waits makes the next poll earlier.
    if ((!this.#timer || this.#queued.length === 1) && !this.#isPolling) this.#schedule();
  }

  #notifyQueued(): void {
    const queued = this.#queued;
    this.#queued = [];
    for (const watcher of queued) {
      watcher.isQueued = false;
      if (watcher.isOver) continue;
      if (this.#unread.has(watcher.baseId) || this.#notify(watcher)) this.#enqueue(watcher);
    }
  }

  /** Returns whether to call again: also if the call failed, which keeps no other one from being made. */
  #notify({ baseId, onFacts }: Watcher): boolean {
    try {
      return onFacts(this.#known.get(baseId)?.facts);
    } catch (error) {
      this.#ctx.log.warn({ baseId, error }, "applying settings failed; retrying");
      return true;
    }
  }

  /** Returns what is known now of those bases that exist. */
  async #compare(ids: string[]): Promise<Map<string, Known>> {
    const { db } = this.#ctx;
    const known = new Map<string, Known>();
    // The versions first, then the hashes: what changes between the queries is read again.
    const versions = await syncVersions(db, ids);
    const ran: string[] = [];
    const changed: string[] = [];
    for (const [id, version] of versions) {
      const before = this.#known.get(id);
      if (before?.version.clusters !== version.clusters) changed.push(id);
      else if (before.version.base !== version.base) ran.push(id);
      else known.set(id, before);
    }
    const hashes = await hashesOf(db, [...ran, ...changed]);
    for (const id of ran) {
      const before = this.#known.get(id);
      if (before && before.hash === hashes.get(id)) known.set(id, { ...before, version: versions.get(id)! });
      else changed.push(id);
    }
    const facts = changed.length > 0 ? await syncFacts(db, changed) : [];
    for (const one of facts)
      known.set(one.id, { version: versions.get(one.id)!, hash: hashes.get(one.id), facts: one });
    return known;
  }
}

async function hashesOf(db: Context["db"], ids: string[]): Promise<Map<string, string>> {
  return ids.length > 0 ? await syncFactHashes(db, ids) : new Map();
}
