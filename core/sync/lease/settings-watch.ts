/**
 * Informs leases of changes that people make to their bases while a sync is running: settings, the API key, a pause, a
 * deletion, a requested sync or schema check.
 *
 * Polls with one query a second for all bases that a worker holds, which only reads in which groups of them rows have
 * changed: nearly none, where bases are at rest. The rows of those groups are then compared one by one. Runs change
 * them as well: a third query shows which rows were changed by people. A notification could get lost and would need the
 * same queries as a fallback.
 */
import type { Context } from "../../context";
import {
  type SyncFacts,
  type SyncVersion,
  syncFactHashes,
  syncFacts,
  syncVersionDigests,
  syncVersions,
  versionGroupOf,
} from "../../control/bases";

const POLL_MS = 1000;

/** Called once a second with the current state of the base; undefined when the base no longer exists. */
type OnFacts = (facts: SyncFacts | undefined) => void;

interface Known {
  version: SyncVersion;
  /** Undefined: the base was deleted meanwhile, or has just been created. */
  hash: string | undefined;
  facts: SyncFacts;
}

export class SettingsWatch {
  #ctx: Pick<Context, "db" | "log">;
  #watched = new Map<string, Set<OnFacts>>();
  /** What was read last of each watched base. */
  #known = new Map<string, Known>();
  /** Of the groups of these bases, from before they were read. */
  #digests = new Map<string, string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ctx: Pick<Context, "db" | "log">) {
    this.#ctx = ctx;
  }

  /** Watches until the returned handle is disposed of. */
  watch(baseId: string, onFacts: OnFacts): Disposable {
    const listeners = this.#watched.get(baseId) ?? new Set();
    this.#watched.set(baseId, listeners.add(onFacts));
    this.#timer ??= setTimeout(() => this.#poll(), POLL_MS);
    return {
      [Symbol.dispose]: () => {
        listeners.delete(onFacts);
        if (listeners.size === 0 && this.#watched.get(baseId) === listeners) this.#watched.delete(baseId);
      },
    };
  }

  async #poll(): Promise<void> {
    const asked = [...this.#watched.keys()];
    if (asked.length === 0) {
      this.#timer = undefined;
      return;
    }
    const { db } = this.#ctx;
    try {
      const digests = await syncVersionDigests(db, asked);
      const isSame = (id: string) => {
        const group = versionGroupOf(id);
        return digests.get(group) === this.#digests.get(group);
      };
      const known = new Map<string, Known>();
      const suspected: string[] = [];
      for (const id of asked) {
        const before = isSame(id) ? this.#known.get(id) : undefined;
        if (before) known.set(id, before);
        else suspected.push(id);
      }
      if (suspected.length > 0) await this.#compare(suspected, known);
      this.#known = known;
      this.#digests = digests;
      for (const id of asked)
        for (const onFacts of this.#watched.get(id) ?? []) onFacts(known.get(id)?.facts);
    } catch (error) {
      this.#ctx.log.debug({ error }, "reading settings failed");
    }
    this.#timer = setTimeout(() => this.#poll(), POLL_MS);
  }

  /** Adds what is known now of those bases that exist. */
  async #compare(ids: string[], known: Map<string, Known>): Promise<void> {
    const { db } = this.#ctx;
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
      const before = this.#known.get(id)!;
      if (before.hash === hashes.get(id)) known.set(id, { ...before, version: versions.get(id)! });
      else changed.push(id);
    }
    const facts = changed.length > 0 ? await syncFacts(db, changed) : [];
    for (const one of facts)
      known.set(one.id, { version: versions.get(one.id)!, hash: hashes.get(one.id), facts: one });
  }
}

async function hashesOf(db: Context["db"], ids: string[]): Promise<Map<string, string>> {
  return ids.length > 0 ? await syncFactHashes(db, ids) : new Map();
}
