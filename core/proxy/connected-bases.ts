/**
 * Looks up the bases that are connected to a source base. Several accounts may have connected it, each with its own
 * replica.
 *
 * A write looks them up again when the source has answered, so that it includes a base connected a moment ago. Before, and for a
 * read, an answer that is a few seconds old will do.
 *
 * Lookups share statements: what is asked for while one runs is in the next one. Anyone can name any base: those that are not
 * known to be connected are looked up and remembered apart, so that made-up ones neither delay nor displace any other.
 */

import { SharedLookup, withTimeout } from "../async";
import type { Db } from "../context";
import type { BaseState } from "../control/bases";
import { CONTROL_PATIENCE_MS, LOOKUP_AGE_MS } from "../keys";
import type { Logger } from "../log";
import { LruMap } from "../lru-map";
import { proxied, type SourceSelection } from "../source";

/** Reads of a base that was connected less than LOOKUP_AGE_MS ago may bypass its quota. A lookup that is older than this is repeated in the background, so that reads of a busy base do not wait for it, ms. */
const RENEW_AFTER_MS = LOOKUP_AGE_MS / 2;
/** Maximum number of source bases remembered: of those that are connected, and of those that are not. */
const MAX_REMEMBERED = 10_000;

export interface ConnectedBase {
  id: string;
  accountId: string;
  platform: string;
  sourceBaseId: string;
  databaseId: string;
  /** The database is on a customer's own server. */
  isExternal: boolean;
  schema: string;
  /** Also available while the control plane is unreachable: showing a write may require a read from the source. */
  encryptedApiKey: string;
  /** What is copied; null: everything. */
  selection: SourceSelection | null;
  encryptedHashKey: string | null;
  turbo: boolean;
  /** Reads with the base's own key may be answered from the replica even if the request does not ask for that. */
  replicaReads: boolean;
  /** Writes of single records may be sent to the source in one request. */
  coalesceWrites: boolean;
  state: BaseState;
  /** On a cluster of ours, where customers cannot change anything: its tables hold only what the source reported. */
  isReadOnly: boolean;
  /** Ids of the tables that its sync cannot read. */
  failingTables: string[];
  /** When the source last accepted the base's own key, on this process's clock (ms); -Infinity: unknown. */
  keyAcceptedAt: number;
}

/** How long after the source accepted the base's own key its account may still read the base, ms. */
const KEY_ACCEPTED_MS = 15 * 60_000;
/** Minimum interval between updates of the stored time at which the key was accepted, ms. */
const STORE_EVERY_MS = 60_000;

/** Does the base sync: is it neither paused nor in state `needs_attention`? */
export function isSyncing({ state }: ConnectedBase): boolean {
  return state === "starting" || state === "active";
}

/**
 * Has the source accepted the base's own key within the last minutes? Only then may its account see what others write.
 */
export function isKeyFresh({ keyAcceptedAt }: ConnectedBase): boolean {
  return performance.now() - keyAcceptedAt < KEY_ACCEPTED_MS;
}

/** The columns that `toConnected` needs to create a `ConnectedBase`, from `bases as b`. */
export const connectedColumns = (db: Db) => db`
  b.id, b.account_id as "accountId", b.platform, b.source_base_id as "sourceBaseId",
  b.database_id as "databaseId", b.schema_name as schema,
  (select d.cluster_id is null from databases as d where d.id = b.database_id) as "isExternal",
  b.encrypted_api_key as "encryptedApiKey", b.selection, b.encrypted_hash_key as "encryptedHashKey", b.turbo, b.replica_reads as "replicaReads",
  b.coalesce_writes as "coalesceWrites", b.state,
  (select d.cluster_id is not null and not d.is_writable from databases as d where d.id = b.database_id) as "isReadOnly",
  jsonb_path_query_array(b.failing_tables, '$[*].table_id') as "failingTables",
  (extract(epoch from now() - greatest(b.key_accepted_at, b.sync_completed_at, b.created_at,
    (select f.read_at from live_feeds as f where f.base_id = b.id))) * 1000)::float8 as "keyAcceptedAgoMs"`;

export type ConnectedRow = Omit<ConnectedBase, "keyAcceptedAt"> & { keyAcceptedAgoMs: number };

export function toConnected({ keyAcceptedAgoMs, ...base }: ConnectedRow): ConnectedBase {
  return { ...base, keyAcceptedAt: performance.now() - keyAcceptedAgoMs };
}

export interface BaseLookup {
  /** Includes paused bases, but not bases that are being deleted. */
  bases: ConnectedBase[];
  /** False: the control plane is unreachable, and this is the last known answer, if any. */
  isCurrent: boolean;
  /**
   * False only where no account has connected the base, as far as is or was known: requests then need no permit.
   */
  mayBeConnected: boolean;
  /**
   * Another control plane has the base, or is about to: its rate limiter counts the requests, so none may be sent from
   * here.
   */
  elsewhere?: BaseElsewhere | undefined;
}

/** `isOver`: the move is complete. `proxyUrl`: the proxy to use, if the operator has named it. */
export interface BaseElsewhere {
  isOver: boolean;
  proxyUrl: string | null;
}

interface Known {
  bases: ConnectedBase[];
  moved: BaseElsewhere | undefined;
}

const NOT_CONNECTED: Known = { bases: [], moved: undefined };

/** Identifies the base's replica. The key changes when the base is moved to another database. */
export function replicaKey({ id, databaseId, schema }: ConnectedBase): string {
  return `${id} ${databaseId} ${schema}`;
}

export class ConnectedBases {
  readonly #db: Db;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #connected = new LruMap<string, Known & { at: number }>(MAX_REMEMBERED);
  readonly #others = new LruMap<string, Known & { at: number }>(MAX_REMEMBERED);
  readonly #ofConnected = new SharedLookup((ids) => this.#select(ids));
  readonly #ofOthers = new SharedLookup((ids) => this.#select(ids));
  readonly #asking = new Map<string, Promise<BaseLookup>>();
  #awayUntil = Number.NEGATIVE_INFINITY;

  /** @param now ms on any monotonic clock */
  constructor(ctx: { db: Db; log: Logger }, now: () => number = () => performance.now()) {
    this.#db = ctx.db;
    this.#log = ctx.log;
    this.#now = now;
  }

  /** Returns the bases as of a few seconds ago at most. Never fails. */
  async recent(sourceBaseId: string): Promise<BaseLookup> {
    const known = this.#find(sourceBaseId);
    const ageMs = known ? this.#now() - known.at : Number.POSITIVE_INFINITY;
    if (known && ageMs < RENEW_AFTER_MS) return foundNow(known);
    const renewing = this.#renew(sourceBaseId);
    return known && ageMs < LOOKUP_AGE_MS ? foundNow(known) : renewing;
  }

  #renew(sourceBaseId: string): Promise<BaseLookup> {
    const running = this.#asking.get(sourceBaseId);
    if (running) return running;
    const asking = this.current(sourceBaseId).finally(() => this.#asking.delete(sourceBaseId));
    this.#asking.set(sourceBaseId, asking);
    return asking;
  }

  /** Returns the bases as of now. Never fails. */
  async current(sourceBaseId: string): Promise<BaseLookup> {
    if (this.#now() < this.#awayUntil) return this.#lastKnown(sourceBaseId);
    const lookup = this.#connected.get(sourceBaseId) ? this.#ofConnected : this.#ofOthers;
    try {
      const known = (await lookup.get(sourceBaseId)) ?? NOT_CONNECTED;
      this.#remember(sourceBaseId, known);
      return foundNow(known);
    } catch (error) {
      this.#log.warn({ error }, "reading connected bases failed");
      this.#awayUntil = this.#now() + CONTROL_PATIENCE_MS;
      return this.#lastKnown(sourceBaseId);
    }
  }

  #find(sourceBaseId: string): (Known & { at: number }) | undefined {
    return this.#connected.get(sourceBaseId) ?? this.#others.get(sourceBaseId);
  }

  #remember(sourceBaseId: string, known: Known): void {
    const [kept, left] =
      known === NOT_CONNECTED ? [this.#others, this.#connected] : [this.#connected, this.#others];
    kept.set(sourceBaseId, { ...known, at: this.#now() });
    left.delete(sourceBaseId);
  }

  #lastKnown(sourceBaseId: string): BaseLookup {
    const known = this.#find(sourceBaseId);
    if (!known) return { bases: [], isCurrent: false, mayBeConnected: true };
    return { ...foundNow(known), isCurrent: false };
  }

  /** Records that the source has just accepted the base's own key. Returns at once. */
  keyAccepted(base: ConnectedBase): void {
    const now = performance.now();
    const isStored = now - base.keyAcceptedAt < STORE_EVERY_MS;
    base.keyAcceptedAt = now;
    if (isStored) return;
    this.#db`update bases set key_accepted_at = now() where id = ${base.id}`.catch((error: unknown) => {
      this.#log.debug({ baseId: base.id, error }, "storing an accepted key failed");
    });
  }

  /** @throws BasetideError `control_unavailable` if there is no answer in time: no later lookup waits longer for it */
  #select(sourceBaseIds: string[]): Promise<Map<string, Known>> {
    return withTimeout(CONTROL_PATIENCE_MS, "control_unavailable", this.#selectAll(sourceBaseIds));
  }

  /** Returns what is known of those that are connected, or were moved. */
  async #selectAll(sourceBaseIds: string[]): Promise<Map<string, Known>> {
    const rows = await this.#db<ConnectedRow[]>`
      select ${connectedColumns(this.#db)} from bases as b
      where b.platform = ${proxied.id} and b.source_base_id = any (${sourceBaseIds}) and b.state <> 'deleting'`;
    const found = new Map<string, Known>();
    for (const [id, bases] of Map.groupBy(rows.map(toConnected), (base) => base.sourceBaseId))
      found.set(id, { bases, moved: undefined });
    const rest = sourceBaseIds.filter((id) => !found.has(id));
    if (rest.length === 0) return found;
    const moved = await this.#db<{ id: string; proxyUrl: string | null }[]>`
      select distinct on (source_base_id) source_base_id as id, proxy_url as "proxyUrl" from moved_bases
      where platform = ${proxied.id} and source_base_id = any (${rest}) order by source_base_id, moved_at desc`;
    for (const { id, proxyUrl } of moved) found.set(id, { bases: [], moved: { isOver: true, proxyUrl } });
    return found;
  }
}

function foundNow({ bases, moved }: Known): BaseLookup {
  const isMoving = bases.length > 0 && bases.every(({ state }) => state === "moving");
  const elsewhere = isMoving ? { isOver: false, proxyUrl: null } : moved;
  return { bases, isCurrent: true, mayBeConnected: bases.length > 0, elsewhere };
}
