/**
 * API keys that the source has accepted for a base. Only they use the base's wait queue, count in its budget, cause
 * a pause, or read a replica.
 *
 * Guarantees:
 *
 * K1. A key is accepted by a 2xx of the source to a request that names the base, and by nothing that a client says.
 * A 401 ends that at once; so do ten 403s in a row, since a single one may be about one table.
 *
 * K3. What one process learns of a refusal, the others know within seconds: a key reads a replica only while the control
 * plane lists it. A 401 and the first 403 take it from the list, and the next 2xx puts it back.
 *
 * K2. A key that is known in memory is decided without waiting. The control plane is asked for unknown keys only,
 * at most once in a few seconds per base, and an outage never stops a known key.
 */
import type { Config } from "../config";
import type { Db } from "../context";
import type { Logger } from "../log";
import { LruMap } from "../lru-map";
import { acceptedKeyStore } from "./accepted-key-store";
import { type KeyHasher, keyHasher, MOST_REMEMBERED } from "./key-hash";

/** How long an accepted key may use the base's queue without another acceptance, ms. */
const ACCEPTED_MS = 24 * 3600_000;
/** How long it may read a replica after the source let it read the base, ms. */
const READ_MS = 10 * 60_000;
/** How long a key that the source has refused is not sent again, ms. */
const REFUSED_MS = 60_000;
/** Minimum time between two stores of a key, ms. */
const STORE_EVERY_MS = 5 * 60_000;
/** 403s without a 2xx in between that end an acceptance: a single one may be about one table or one field. */
const MOST_FORBIDDEN = 10;

interface Entry {
  acceptedAt: number;
  /** When the source last let the key read records of the base. */
  readAt: number;
  storedAt: number;
  forbidden: number;
}

/** The source's answer to a request that names the base. */
interface KeyAnswer {
  method: string;
  status: number;
  /** Whether the answer contains records of the base. */
  isRead?: boolean;
  /** Whether other processes need to know the key, because the base is connected. */
  isConnected: boolean;
}

export class AcceptedKeys {
  readonly hash: KeyHasher;
  readonly #store: ReturnType<typeof acceptedKeyStore>;
  readonly #now: () => number;
  readonly #accepted = new LruMap<string, Entry>(MOST_REMEMBERED);
  readonly #refusedUntil = new LruMap<string, number>(MOST_REMEMBERED);

  constructor(ctx: { db: Db; log: Logger; config: Config }, now: () => number = () => performance.now()) {
    this.hash = keyHasher(ctx.config);
    this.#store = acceptedKeyStore(ctx, now);
    this.#now = now;
  }

  /** Returns whether this process knows the key as accepted. */
  isKnown(hash: string): boolean {
    const entry = this.#accepted.get(hash);
    return entry !== undefined && this.#now() - entry.acceptedAt < ACCEPTED_MS;
  }

  /**
   * Returns how long a key that the source refused less than a minute ago must not be sent again, ms; 0 if it may.
   */
  refusedForMs(hash: string): number {
    return Math.max(0, (this.#refusedUntil.get(hash) ?? 0) - this.#now());
  }

  /** Like `isKnown`, but asks the control plane about keys that this process does not know. Never fails. */
  async isAccepted(sourceBaseId: string, hash: string): Promise<boolean> {
    if (this.isKnown(hash)) return true;
    const agoMs = await this.#store.acceptedAgoMs(sourceBaseId, hash);
    if (agoMs === undefined || agoMs >= ACCEPTED_MS) return false;
    const acceptedAt = this.#now() - agoMs;
    this.#accepted.set(hash, { acceptedAt, readAt: -Infinity, storedAt: acceptedAt, forbidden: 0 });
    return true;
  }

  /**
   * Returns whether the source has let the key read records of the base in the last ten minutes, and no process has seen
   * it refused since. Without the control plane, this process's own knowledge decides. Never fails.
   */
  async mayRead(sourceBaseId: string, hash: string): Promise<boolean> {
    const isRead = () => this.#now() - (this.#accepted.get(hash)?.readAt ?? -Infinity) < READ_MS;
    return isRead() && !(await this.#store.isUnlisted(sourceBaseId, hash)) && isRead();
  }

  /** Records the source's answer to a request with this key. */
  record(sourceBaseId: string, hash: string, answer: KeyAnswer): void {
    const { method, status } = answer;
    // The source may answer a preflight or a HEAD without checking the key.
    if (method === "OPTIONS" || method === "HEAD") return;
    if (status >= 200 && status < 300) this.#accept(sourceBaseId, hash, answer);
    else if (status === 401) this.#refuse(sourceBaseId, hash, answer);
    else if (status === 403) this.#forbid(sourceBaseId, hash, answer);
  }

  /** Waits for running stores. */
  close(): Promise<void> {
    return this.#store.settled();
  }

  #accept(sourceBaseId: string, hash: string, { isRead, isConnected }: KeyAnswer): void {
    const now = this.#now();
    const entry = this.#accepted.get(hash) ?? {
      acceptedAt: 0,
      readAt: -Infinity,
      storedAt: -Infinity,
      forbidden: 0,
    };
    entry.acceptedAt = now;
    entry.forbidden = 0;
    if (isRead) entry.readAt = now;
    this.#accepted.set(hash, entry);
    this.#refusedUntil.delete(hash);
    if (!isConnected || now - entry.storedAt < STORE_EVERY_MS) return;
    entry.storedAt = now;
    this.#store.add(sourceBaseId, hash);
  }

  /** Another process may have listed the key. */
  #refuse(sourceBaseId: string, hash: string, { isConnected }: KeyAnswer): void {
    this.#refusedUntil.set(hash, this.#now() + REFUSED_MS);
    this.#accepted.delete(hash);
    if (isConnected) this.#store.remove(sourceBaseId, hash);
  }

  /** Likewise: a base's own key needs no entry here. */
  #forbid(sourceBaseId: string, hash: string, { isConnected }: KeyAnswer): void {
    if (isConnected) this.#store.remove(sourceBaseId, hash);
    const entry = this.#accepted.get(hash);
    if (!entry) return;
    entry.readAt = -Infinity;
    entry.storedAt = -Infinity;
    if (++entry.forbidden >= MOST_FORBIDDEN) this.#accepted.delete(hash);
  }
}
