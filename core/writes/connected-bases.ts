/**
 * Who has connected a source base: several accounts may have, each with a replica of its own.
 *
 * A write asks anew, so that a base connected a moment ago misses nothing; a read, which only wants to know whose
 * quota to use, takes an answer that is a few seconds old.
 */

import type { Db } from "../context";
import type { Logger } from "../log";
import { within } from "./within";

/** The platform that the proxy speaks. */
export const PLATFORM = "airtable";
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
  platform: string;
  sourceBaseId: string;
  databaseId: string;
  schema: string;
  /** At hand also while the control plane is away: to show a write the source may have to be asked. */
  sealedApiKey: string;
  turbo: boolean;
  /** Reads may be answered from the replica without being asked for. */
  replicaReads: boolean;
}

export interface Found {
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
  readonly #asking = new Map<string, Promise<Found>>();
  #awayUntil = Number.NEGATIVE_INFINITY;

  constructor(ctx: { db: Db; log: Logger }) {
    this.#db = ctx.db;
    this.#log = ctx.log;
  }

  /** As of a few seconds ago at most. Never fails. */
  async recent(sourceBaseId: string): Promise<Found> {
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
  async current(sourceBaseId: string): Promise<Found> {
    if (performance.now() < this.#awayUntil) return this.#lastKnown(sourceBaseId);
    try {
      const bases = await within(LOOKUP_MS, "control_unavailable", this.#select(sourceBaseId));
      if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
      this.#known.set(sourceBaseId, { bases, at: performance.now() });
      return foundNow(bases);
    } catch (error) {
      this.#log.warn({ error }, "connected bases not looked up");
      this.#awayUntil = performance.now() + AWAY_MS;
      return this.#lastKnown(sourceBaseId);
    }
  }

  #lastKnown(sourceBaseId: string): Found {
    const bases = this.#known.get(sourceBaseId)?.bases;
    return { bases: bases ?? [], isCurrent: false, mayBeConnected: bases?.length !== 0 };
  }

  async #select(sourceBaseId: string): Promise<ConnectedBase[]> {
    return this.#db<ConnectedBase[]>`
      select id, platform, source_base_id as "sourceBaseId", database_id as "databaseId", schema_name as schema,
        sealed_api_key as "sealedApiKey", turbo, replica_reads as "replicaReads"
      from bases
      where platform = ${PLATFORM} and source_base_id = ${sourceBaseId} and state <> 'deleting'`;
  }
}

function foundNow(bases: ConnectedBase[]): Found {
  return { bases, isCurrent: true, mayBeConnected: bases.length > 0 };
}
