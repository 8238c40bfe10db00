/** Stores accepted keys in the control plane, shared by all proxies: hashes, a limited number per base, for a day. */

import { withTimeout } from "../async";
import type { Db } from "../context";
import type { Logger } from "../log";
import { LruMap } from "../lru-map";
import { MOST_REMEMBERED } from "./key-hash";

/** How long the control plane's answer about a base is used, ms. */
export const LOOKUP_AGE_MS = 3000;
/** A control plane that does not answer within this time counts as unavailable, and is not asked again for as long, ms. */
export const CONTROL_PATIENCE_MS = 1000;

interface Lookup {
  at: number;
  /** How long before `at` each key was accepted, ms; undefined without the control plane. */
  agoMs: Promise<Map<string, number> | undefined>;
}

export function acceptedKeyStore({ db, log }: { db: Db; log: Logger }, now: () => number) {
  const lookups = new LruMap<string, Lookup>(MOST_REMEMBERED);
  /** The running change of each key: a removal must not be overtaken by an earlier store. */
  const changes = new Map<string, Promise<unknown>>();
  let awayUntil = -Infinity;

  function change(hash: string, statement: () => PromiseLike<unknown>): void {
    const work = (changes.get(hash) ?? Promise.resolve()).then(statement).catch((error: unknown) => {
      log.debug({ error }, "storing an accepted key failed");
    });
    changes.set(hash, work);
    void work.finally(() => {
      if (changes.get(hash) === work) changes.delete(hash);
    });
  }

  async function load(sourceBaseId: string): Promise<Map<string, number> | undefined> {
    if (now() < awayUntil) return undefined;
    try {
      const rows = await withTimeout(
        CONTROL_PATIENCE_MS,
        "control_unavailable",
        (async () => db<{ key_hash: string; ago_ms: number }[]>`
          select key_hash, (extract(epoch from now() - accepted_at) * 1000)::float8 as ago_ms
          from accepted_keys where source_base_id = ${sourceBaseId}`)(),
      );
      return new Map(rows.map((row) => [row.key_hash, row.ago_ms]));
    } catch (error) {
      log.debug({ error }, "reading accepted keys failed");
      awayUntil = now() + CONTROL_PATIENCE_MS;
      return undefined;
    }
  }

  function listed(sourceBaseId: string): Lookup["agoMs"] {
    const known = lookups.get(sourceBaseId);
    if (known && now() - known.at <= LOOKUP_AGE_MS) return known.agoMs;
    const agoMs = load(sourceBaseId);
    lookups.set(sourceBaseId, { at: now(), agoMs });
    return agoMs;
  }

  return {
    /** Returns how long ago a proxy stored the key, ms. Never fails. */
    async acceptedAgoMs(sourceBaseId: string, hash: string): Promise<number | undefined> {
      return (await listed(sourceBaseId))?.get(hash);
    },
    /** Returns whether the control plane does not list the key, although this process is not about to. Never fails. */
    async isUnlisted(sourceBaseId: string, hash: string): Promise<boolean> {
      if (changes.has(hash)) return false;
      const keys = await listed(sourceBaseId);
      return keys !== undefined && !keys.has(hash);
    },
    add(sourceBaseId: string, hash: string): void {
      change(hash, async () => {
        await db`select accept_key(${sourceBaseId}, ${hash})`;
        lookups.delete(sourceBaseId);
      });
    },
    remove(sourceBaseId: string, hash: string): void {
      lookups.delete(sourceBaseId);
      change(
        hash,
        () => db`delete from accepted_keys where source_base_id = ${sourceBaseId} and key_hash = ${hash}`,
      );
    },
    async settled(): Promise<void> {
      await Promise.all(changes.values());
    },
  };
}
