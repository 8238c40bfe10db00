/**
 * Who has connected a source base: several accounts may have, each with a replica of its own.
 *
 * A write asks anew, so that a base connected a moment ago misses nothing; a read, which only wants to know whose
 * quota to use, takes an answer that is a few seconds old.
 */

import { withTimeout } from "../async";
import type { Db } from "../context";
import type { BaseState } from "../control/bases";
import type { Logger } from "../log";
import { proxied } from "../source";

/** Reads of a base that was connected less than this ago may go past its quota, ms. */
const MAX_AGE_MS = 3000;
/** A control plane that does not answer within this counts as away, ms. */
const LOOKUP_MS = 1000;
/** Once it was away, it is not waited for again for so long, ms. */
const AWAY_MS = 1000;
/** Source bases remembered, connected or not. */
const MAX_REMEMBERED = 10_000;

export interface ConnectedBase {
  id: string;
  accountId: string;
  platform: string;
  sourceBaseId: string;
  databaseId: string;
  /** Its database is on a server of its customer. */
  isExternal: boolean;
  schema: string;
  /** At hand also while the control plane is away: to show a write the source may have to be asked. */
  encryptedApiKey: string;
  turbo: boolean;
  /** Reads with the base's own key may be answered from the replica without being asked for. */
  replicaReads: boolean;
  state: BaseState;
  /** On a cluster of ours, and its customers may change nothing there: what its tables say is what the source said. */
  isReadOnly: boolean;
  /** When the source last accepted the base's own key, on this process's clock (ms); -Infinity: not known. */
  keyAcceptedAt: number;
}

/** A source that accepted the base's own key within this still lets its account read the base, ms. */
const KEY_ACCEPTED_MS = 15 * 60_000;
/** How often it is stored that the key was accepted, ms. */
const STORE_EVERY_MS = 60_000;

/** Syncs run: neither paused nor in need of a person. */
export function isSyncing({ state }: ConnectedBase): boolean {
  return state === "starting" || state === "active";
}

/** Has the source accepted the base's own key in the last minutes? Only then may its account see what others write. */
export function isKeyFresh({ keyAcceptedAt }: ConnectedBase): boolean {
  return performance.now() - keyAcceptedAt < KEY_ACCEPTED_MS;
}

/** The columns of a `ConnectedBase`; `toConnected` makes it of them. Of `bases as b`. */
export const connectedColumns = (db: Db) => db`
  b.id, b.account_id as "accountId", b.platform, b.source_base_id as "sourceBaseId",
  b.database_id as "databaseId", b.schema_name as schema,
  (select d.cluster_id is null from databases as d where d.id = b.database_id) as "isExternal",
  b.encrypted_api_key as "encryptedApiKey", b.turbo, b.replica_reads as "replicaReads", b.state,
  (select d.cluster_id is not null and not d.is_writable from databases as d where d.id = b.database_id) as "isReadOnly",
  (extract(epoch from now() - greatest(b.key_accepted_at, b.sync_completed_at, b.created_at,
    (select f.read_at from live_feeds as f where f.base_id = b.id))) * 1000)::float8 as "keyAcceptedAgoMs"`;

export type ConnectedRow = Omit<ConnectedBase, "keyAcceptedAt"> & { keyAcceptedAgoMs: number };

export function toConnected({ keyAcceptedAgoMs, ...base }: ConnectedRow): ConnectedBase {
  return { ...base, keyAcceptedAt: performance.now() - keyAcceptedAgoMs };
}

export interface BaseLookup {
  /** Paused ones too; those that are being deleted not. */
  bases: ConnectedBase[];
  /** False: the control plane is away, and this is what was last known, if anything. */
  isCurrent: boolean;
  /** False only where it is known, or was last, that nobody has connected the base: then its quota is not ours. */
  mayBeConnected: boolean;
}

/** Which replica the base has: another one when it has been moved. */
export function replicaKey({ id, databaseId, schema }: ConnectedBase): string {
  return `${id} ${databaseId} ${schema}`;
}

export class ConnectedBases {
  readonly #db: Db;
  readonly #log: Logger;
  readonly #known = new Map<string, { bases: ConnectedBase[]; at: number }>();
  readonly #asking = new Map<string, Promise<BaseLookup>>();
  #awayUntil = Number.NEGATIVE_INFINITY;

  constructor(ctx: { db: Db; log: Logger }) {
    this.#db = ctx.db;
    this.#log = ctx.log;
  }

  /** As of a few seconds ago at most. Never fails. */
  async recent(sourceBaseId: string): Promise<BaseLookup> {
    const known = this.#known.get(sourceBaseId);
    if (known && performance.now() - known.at < MAX_AGE_MS) return foundNow(known.bases);
    const asking = this.#asking.get(sourceBaseId) ?? this.current(sourceBaseId);
    this.#asking.set(sourceBaseId, asking);
    try {
      return await asking;
    } finally {
      this.#asking.delete(sourceBaseId);
    }
  }

  /** As of now. Never fails. */
  async current(sourceBaseId: string): Promise<BaseLookup> {
    if (performance.now() < this.#awayUntil) return this.#lastKnown(sourceBaseId);
    try {
      const bases = await withTimeout(LOOKUP_MS, "control_unavailable", this.#select(sourceBaseId));
      if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
      this.#known.set(sourceBaseId, { bases, at: performance.now() });
      return foundNow(bases);
    } catch (error) {
      this.#log.warn({ error }, "connected bases not looked up");
      this.#awayUntil = performance.now() + AWAY_MS;
      return this.#lastKnown(sourceBaseId);
    }
  }

  #lastKnown(sourceBaseId: string): BaseLookup {
    const bases = this.#known.get(sourceBaseId)?.bases;
    return { bases: bases ?? [], isCurrent: false, mayBeConnected: bases?.length !== 0 };
  }

  /** The source has just accepted the base's own key. Returns at once. */
  keyAccepted(base: ConnectedBase): void {
    const now = performance.now();
    const isStored = now - base.keyAcceptedAt < STORE_EVERY_MS;
    base.keyAcceptedAt = now;
    if (isStored) return;
    this.#db`update bases set key_accepted_at = now() where id = ${base.id}`.catch((error: unknown) => {
      this.#log.debug({ baseId: base.id, error }, "accepted key not stored");
    });
  }

  async #select(sourceBaseId: string): Promise<ConnectedBase[]> {
    const rows = await this.#db<ConnectedRow[]>`
      select ${connectedColumns(this.#db)} from bases as b
      where b.platform = ${proxied.id} and b.source_base_id = ${sourceBaseId} and b.state <> 'deleting'`;
    return rows.map(toConnected);
  }
}

function foundNow(bases: ConnectedBase[]): BaseLookup {
  return { bases, isCurrent: true, mayBeConnected: bases.length > 0 };
}
