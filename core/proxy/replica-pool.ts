/**
 * Replicas that proxied calls use: opened at the first one, closed when idle. Reads have connections of their own, because
 * clients decide how many there are, and how long they take.
 *
 * A replica that could not be reached is dropped from the pool. The next write then looks it up in the control plane
 * again (it may have been moved, or have a new password), and does not wait for the driver's growing reconnect pauses.
 */

import { withTimeout } from "../async";
import type { Context } from "../context";
import { attachmentSigner } from "../control/bases";
import { databaseAdminUrl, getDatabase } from "../control/placement";
import { isBasetideError } from "../errors";
import { openReplica } from "../replica";
import { type ConnectedBase, replicaKey } from "./connected-bases";
import { ReplicaHandle } from "./replica-handle";

/** Replicas open at once. Their connections share a small budget of each server, and are closed when idle. */
const MAX_OPEN = 300;
const MAX_IDLE_MS = 10 * 60_000;
/** Longest wait for the control plane to return a replica's location, ms. */
const LOOKUP_MS = 2000;

interface Entry {
  handle: Promise<ReplicaHandle>;
  users: number;
  usedAt: number;
  /** Closed as soon as no work uses it. */
  isForgotten: boolean;
}

export class ReplicaPool {
  readonly #ctx: Pick<Context, "config" | "db" | "secrets" | "log">;
  readonly #entries = new Map<string, Entry>();

  constructor(ctx: Pick<Context, "config" | "db" | "secrets" | "log">) {
    this.#ctx = ctx;
  }

  /** @throws BasetideError `replica_unavailable`, `control_unavailable`, `secret_unreadable`; errors of `work` */
  async use<T>(
    base: ConnectedBase,
    work: (handle: ReplicaHandle) => Promise<T>,
    use: "writes" | "reads" = "writes",
  ): Promise<T> {
    const key = `${use} ${replicaKey(base)}`;
    const entry = this.#entries.get(key) ?? this.#open(key, base, use);
    entry.users++;
    try {
      const handle = await entry.handle.catch((error: unknown) => {
        this.#forget(key, entry);
        throw error;
      });
      return await work(handle);
    } catch (error) {
      if (isBasetideError(error, "replica_unavailable")) this.#forget(key, entry);
      throw error;
    } finally {
      entry.users--;
      entry.usedAt = performance.now();
      if (entry.isForgotten) this.#close(entry);
    }
  }

  async close(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.all(entries.map(async ({ handle }) => (await handle.catch(() => null))?.close()));
  }

  #open(key: string, base: ConnectedBase, use: "writes" | "reads"): Entry {
    this.#closeIdle();
    const entry = {
      handle: this.#connect(base, use),
      users: 0,
      usedAt: performance.now(),
      isForgotten: false,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  async #connect({ id, databaseId, schema }: ConnectedBase, use: "writes" | "reads"): Promise<ReplicaHandle> {
    const where = async () => databaseAdminUrl(this.#ctx, await getDatabase(this.#ctx.db, databaseId));
    const url = await withTimeout(LOOKUP_MS, "control_unavailable", where());
    const signer = () => withTimeout(LOOKUP_MS, "control_unavailable", attachmentSigner(this.#ctx, id));
    return new ReplicaHandle(openReplica({ url, schema }, use), signer);
  }

  #forget(key: string, entry: Entry): void {
    entry.isForgotten = true;
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  #closeIdle(): void {
    const oldestFirst = [...this.#entries].sort(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [key, entry] of oldestFirst) {
      const isIdle = performance.now() - entry.usedAt > MAX_IDLE_MS;
      if (entry.users > 0 || !(isIdle || this.#entries.size >= MAX_OPEN)) continue;
      this.#forget(key, entry);
      this.#close(entry);
    }
  }

  #close(entry: Entry): void {
    if (entry.users > 0) return;
    void entry.handle.then((handle) => handle.close()).catch(() => {});
  }
}
