/**
 * Records that the source has written and a replica may not show, kept in the control plane until somebody has
 * mended them; in memory while the control plane is away.
 */
import type { Db } from "../context";
import { asControlError, cleanText } from "../control/db";
import type { Logger } from "../log";
import { type ConnectedBase, replicaKey } from "./connected-bases";
import type { WriteMetrics } from "./metrics";
import { within } from "./within";

/** A control plane that does not take a note within this counts as away, ms. */
const NOTE_MS = 1000;
/** Repairs of one base that are taken at once: the ids of one request to the source. */
const BATCH = 100;
/** A claim that was not settled after this comes up again: its process has died. */
const CLAIM = "60 seconds";
const FIRST_PAUSE_SECONDS = 1;
const MAX_PAUSE_SECONDS = 300;
/** Notes kept in memory; past it the next sync has to mend them. */
const MAX_IN_MEMORY = 100_000;

export interface RepairNote {
  /** A base; or a source base, for whoever has connected it, where that could not be found out. */
  base: Pick<ConnectedBase, "id"> | UnknownBases;
  tableRef: string;
  ids: string[];
}

/** Whoever has connected the source base, but for those that have been seen to, as long as their replicas are the same. */
interface UnknownBases extends Pick<ConnectedBase, "platform" | "sourceBaseId"> {
  except: ConnectedBase[];
}

/** Repairs of one table, claimed. */
export interface Claim {
  base: ConnectedBase;
  tableRef: string;
  records: { id: string; notedAt: string }[];
}

export class Repairs {
  readonly #db: Db;
  readonly #log: Logger;
  readonly #metrics: WriteMetrics;
  #inMemory: RepairNote[] = [];
  /** Called after each note. */
  onNote: () => void = () => {};

  constructor(ctx: { db: Db; log: Logger }, metrics: WriteMetrics) {
    this.#db = ctx.db;
    this.#log = ctx.log;
    this.#metrics = metrics;
  }

  get inMemory(): number {
    return this.#inMemory.length;
  }

  /** Notes repairs; never fails, and takes a second at most. */
  async note(note: RepairNote): Promise<void> {
    if (note.ids.length === 0) return;
    try {
      await within(NOTE_MS, "control_unavailable", this.#insert(note));
      this.#metrics.repairNoted(note.ids.length);
      this.onNote();
    } catch (error) {
      this.#log.warn({ error, records: note.ids.length }, "repair kept in memory");
      this.keep(note);
    }
  }

  /** Keeps a note in memory until the control plane, known to be away, is back. */
  keep(note: RepairNote): void {
    if (note.ids.length === 0) return;
    if (this.#inMemory.length >= MAX_IN_MEMORY) {
      this.#log.error({ records: note.ids.length }, "repair dropped; the next sync mends it");
      return;
    }
    this.#metrics.repairNoted(note.ids.length);
    this.#inMemory.push(note);
  }

  /** Moves what is in memory to the control plane. Fails where that is still away. */
  async flush(): Promise<void> {
    while (this.#inMemory[0]) {
      try {
        await this.#insert(this.#inMemory[0]);
      } catch (error) {
        // One that nobody can take must not keep the others here for ever.
        if (asControlError(error).code === "control_unavailable") throw error;
        this.#log.error({ error }, "repair dropped; the next sync mends it");
      }
      this.#inMemory.shift();
    }
  }

  /** The repairs of one table that are due, for this process alone; null if there are none. */
  async claim(): Promise<Claim | null> {
    const rows = await this.#db<
      (ConnectedBase & { table_ref: string; record_id: string; noted_at: string })[]
    >`
      with first as (
        select base_id, table_ref from repairs where due_at <= now()
        order by due_at limit 1 for update skip locked
      ), due as (
        select r.base_id, r.table_ref, r.record_id
        from repairs as r join first using (base_id, table_ref)
        where r.due_at <= now() limit ${BATCH} for update of r skip locked
      ), claimed as (
        update repairs as r set due_at = now() + ${CLAIM}::interval, attempts = r.attempts + 1
        from due where (r.base_id, r.table_ref, r.record_id) = (due.base_id, due.table_ref, due.record_id)
        returning r.*
      )
      select c.table_ref, c.record_id, c.noted_at::text, b.id, b.platform, b.source_base_id as "sourceBaseId",
        b.database_id as "databaseId", b.schema_name as schema, b.sealed_api_key as "sealedApiKey", b.turbo,
        b.replica_reads as "replicaReads"
      from claimed as c join bases as b on b.id = c.base_id`;
    const [first] = rows;
    if (!first) return null;
    const { table_ref: tableRef, record_id: _id, noted_at: _at, ...base } = first;
    return { base, tableRef, records: rows.map((row) => ({ id: row.record_id, notedAt: row.noted_at })) };
  }

  /** Drops what was mended, but for what was noted again meanwhile. */
  async done({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      delete from repairs as r
      using unnest(${records.map(({ id }) => id)}::text[], ${records.map(({ notedAt }) => notedAt)}::text[])
        as mended (record_id, noted_at)
      where r.base_id = ${base.id} and r.table_ref = ${tableRef} and r.record_id = mended.record_id
        and r.noted_at = mended.noted_at::timestamptz`;
    this.#metrics.repairDone(records.length);
  }

  /** Keeps a claim from coming up again while it is being mended, but for what was noted again meanwhile. */
  async renew({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      update repairs as r set due_at = now() + ${CLAIM}::interval
      from unnest(${records.map(({ id }) => id)}::text[], ${records.map(({ notedAt }) => notedAt)}::text[])
        as claimed (record_id, noted_at)
      where r.base_id = ${base.id} and r.table_ref = ${tableRef} and r.record_id = claimed.record_id
        and r.noted_at = claimed.noted_at::timestamptz`;
  }

  /** Puts a claim off; each try that fails doubles the pause. */
  async putOff({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      update repairs
      set due_at = now() + least(${FIRST_PAUSE_SECONDS} * power(2, least(attempts - 1, 20)), ${MAX_PAUSE_SECONDS})
        * interval '1 second'
      where base_id = ${base.id} and table_ref = ${tableRef}
        and record_id = any (${records.map(({ id }) => id)})`;
  }

  /** How many wait in the control plane, and how long it is until the next is due, ms (null: none). */
  async pending(): Promise<{ count: number; nextInMs: number | null }> {
    const [row] = await this.#db<{ count: number; next_in_ms: number | null }[]>`
      select count(*)::int as count,
        extract(epoch from min(due_at) - now())::float8 * 1000 as next_in_ms
      from repairs`;
    const { count, next_in_ms } = row!;
    return { count, nextInMs: next_in_ms === null ? null : Math.max(0, next_in_ms) };
  }

  async #insert({ base, tableRef, ids }: RepairNote): Promise<void> {
    const db = this.#db;
    const isThe =
      "id" in base
        ? db`id = ${base.id}`
        : db`platform = ${base.platform} and source_base_id = ${base.sourceBaseId}
            and id || ' ' || database_id || ' ' || schema_name <> all (${base.except.map(replicaKey)}::text[])`;
    // Locked: a base that goes away at this moment takes the note along instead of failing it.
    await db`
      insert into repairs (base_id, table_ref, record_id)
      select b.id, ${cleanText(tableRef)}, record_id
      from (select id from bases where ${isThe} and state <> 'deleting' for key share) as b,
        unnest(${[...new Set(ids)]}::text[]) as record_id
      on conflict (base_id, table_ref, record_id) do update
        set noted_at = excluded.noted_at, due_at = excluded.due_at, attempts = 0`;
  }
}

/** Records of the base that wait for repair. */
export async function countRepairs(db: Db, baseId: string): Promise<number> {
  const [row] = await db<{ count: number }[]>`
    select count(*)::int as count from repairs where base_id = ${baseId}`;
  return row!.count;
}
