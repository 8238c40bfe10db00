/**
 * Stores records that the source has written and a replica may not show yet, in the control plane, until a process has
 * repaired them; in memory while the control plane is unreachable.
 */

import { withTimeout } from "../async";
import type { Db } from "../context";
import { QUARANTINED_AFTER } from "../control/jobs";
import type { Logger } from "../log";
import { asControlError, cleanText } from "../postgres";
import { strictest } from "../source";
import {
  type ConnectedBase,
  type ConnectedRow,
  connectedColumns,
  replicaKey,
  toConnected,
} from "./connected-bases";
import type { WriteMetrics } from "./metrics";

/** A control plane that does not store a repair within this time counts as unreachable, ms. */
const RECORD_MS = 1000;
/** Repairs of one base in one claim: the ids of one request to the source. */
const BATCH = strictest().pageSize;
/**
 * A claim that is not settled within this time becomes due again, s: its process has died. From the third such claim in
 * a row on, the time doubles: a record that crashes proxies then crashes only a few.
 */
const CLAIM_SECONDS = 60;
const MAX_CLAIM_SECONDS = 3600;
const FIRST_PAUSE_SECONDS = 1;
const MAX_PAUSE_SECONDS = 300;
/** Maximum number of stored repairs per base; beyond it the base's next sync repairs the rest. */
const MAX_PER_BASE = 10_000;
/** Maximum number of repairs in memory; beyond it the next sync repairs the rest. */
const MAX_IN_MEMORY = 100_000;

interface Repair {
  /** A base; or a source base, for all bases connected to it, if these could not be looked up. */
  base: Pick<ConnectedBase, "id"> | UnknownBases;
  tableRef: string;
  ids: string[];
}

/** All bases connected to the source base, except those already handled, as long as they have the same replicas. */
interface UnknownBases extends Pick<ConnectedBase, "platform" | "sourceBaseId"> {
  except: ConnectedBase[];
}

/** The claimed repairs of one table. */
export interface Claim {
  base: ConnectedBase;
  tableRef: string;
  records: { id: string; recordedAt: string }[];
}

export class Repairs {
  readonly #db: Db;
  readonly #log: Logger;
  readonly #metrics: WriteMetrics;
  #inMemory: Repair[] = [];
  /** Claims to reschedule as soon as the control plane is back. */
  #unsettled: Claim[] = [];
  /** Called after each recorded repair. */
  onRecorded: () => void = () => {};

  constructor(ctx: { db: Db; log: Logger }, metrics: WriteMetrics) {
    this.#db = ctx.db;
    this.#log = ctx.log;
    this.#metrics = metrics;
  }

  get inMemory(): number {
    return this.#inMemory.length;
  }

  /** Records a repair. Never fails, and takes at most a second. */
  async record(repair: Repair): Promise<void> {
    if (repair.ids.length === 0) return;
    try {
      await withTimeout(RECORD_MS, "control_unavailable", this.#insert(repair));
      this.#metrics.repairRecorded(repair.ids.length);
      this.onRecorded();
    } catch (error) {
      this.#log.warn({ error, records: repair.ids.length }, "storing a repair failed; it is kept in memory");
      this.keepInMemory(repair);
    }
  }

  /** Stores a repair in memory until the control plane, known to be unreachable, is back. */
  keepInMemory(repair: Repair): void {
    if (repair.ids.length === 0) return;
    if (this.#inMemory.length >= MAX_IN_MEMORY) {
      this.#log.error(
        { records: repair.ids.length },
        "repair dropped; the next full check corrects the record",
      );
      return;
    }
    this.#metrics.repairRecorded(repair.ids.length);
    this.#inMemory.push(repair);
  }

  /**
   * Moves the repairs in memory to the control plane, and reschedules the claims that could not be. Fails while it is
   * unreachable.
   */
  async flush(): Promise<void> {
    while (this.#unsettled[0]) {
      await this.#reschedule(this.#unsettled[0]);
      this.#unsettled.shift();
    }
    if (this.#inMemory.length === 0) return;
    while (this.#inMemory[0]) {
      try {
        await this.#insert(this.#inMemory[0]);
      } catch (error) {
        // A repair that can never be stored must not block the others forever.
        if (asControlError(error).code === "control_unavailable") throw error;
        this.#log.error({ error }, "repair dropped; the next full check corrects the record");
      }
      this.#inMemory.shift();
    }
    this.onRecorded();
  }

  /**
   * Claims the due repairs of one table for this process; null if there are none.
   *
   * @param isExternal true: repairs of databases on customers' own servers; false: of hosted ones
   * @param except ids of bases
   */
  async claim(isExternal: boolean, except: string[] = []): Promise<Claim | null> {
    const rows = await this.#db<
      (ConnectedRow & { table_ref: string; record_id: string; recorded_at: string })[]
    >`
      with first as (
        select base_id, table_ref from repairs as r
        where due_at <= now() and base_id <> all (${except})
          and ${isAskedFor(this.#db)} and ${isOn(this.#db, isExternal)} and not exists (
            select from repairs as deadly
            where deadly.base_id = r.base_id and deadly.unsettled >= ${QUARANTINED_AFTER} and deadly.due_at > now())
        order by due_at limit 1 for update of r skip locked
      ), due as (
        select r.base_id, r.table_ref, r.record_id
        from repairs as r join first using (base_id, table_ref)
        where r.due_at <= now() limit ${BATCH} for update of r skip locked
      ), claimed as (
        update repairs as r set due_at = now() + ${this.#claimed(this.#db`r.unsettled`)},
          attempts = r.attempts + 1, unsettled = r.unsettled + 1
        from due where (r.base_id, r.table_ref, r.record_id) = (due.base_id, due.table_ref, due.record_id)
        returning r.*
      )
      select c.table_ref, c.record_id, c.recorded_at::text, ${connectedColumns(this.#db)}
      from claimed as c join bases as b on b.id = c.base_id`;
    const [first] = rows;
    if (!first) return null;
    const { table_ref: tableRef, record_id: _id, recorded_at: _at, ...row } = first;
    return {
      base: toConnected(row),
      tableRef,
      records: rows.map((row) => ({ id: row.record_id, recordedAt: row.recorded_at })),
    };
  }

  /** Deletes finished repairs, except those recorded again meanwhile. */
  async done({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      delete from repairs as r
      using unnest(${records.map(({ id }) => id)}::text[], ${records.map(({ recordedAt }) => recordedAt)}::text[])
        as repaired (record_id, recorded_at)
      where r.base_id = ${base.id} and r.table_ref = ${tableRef} and r.record_id = repaired.record_id
        and r.recorded_at = repaired.recorded_at::timestamptz`;
    this.#metrics.repairDone(records.length);
  }

  /** Keeps a claim from becoming due again while it is being repaired, except for records recorded again meanwhile. */
  async renew({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      update repairs as r set due_at = now() + ${this.#claimed(this.#db`r.unsettled - 1`)}
      from unnest(${records.map(({ id }) => id)}::text[], ${records.map(({ recordedAt }) => recordedAt)}::text[])
        as claimed (record_id, recorded_at)
      where r.base_id = ${base.id} and r.table_ref = ${tableRef} and r.record_id = claimed.record_id
        and r.recorded_at = claimed.recorded_at::timestamptz`;
  }

  /**
   * Reschedules a claim; each failed attempt doubles the pause. While the control plane is unreachable, the claim is
   * kept until `flush`: left alone, it would count as one whose process has died.
   */
  async reschedule(claim: Claim): Promise<void> {
    try {
      await this.#reschedule(claim);
    } catch (error) {
      if (asControlError(error).code !== "control_unavailable") throw error;
      this.#unsettled.push(claim);
    }
  }

  async #reschedule({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      update repairs
      set unsettled = 0,
        due_at = now() + least(${FIRST_PAUSE_SECONDS} * power(2, least(attempts - 1, 20)), ${MAX_PAUSE_SECONDS})
        * interval '1 second'
      where base_id = ${base.id} and table_ref = ${tableRef}
        and record_id = any (${records.map(({ id }) => id)})`;
  }

  /** Returns how many repairs wait in the control plane, and the time until the next one is due, ms (null: none). */
  async pending(isExternal: boolean): Promise<{ count: number; nextInMs: number | null }> {
    const [row] = await this.#db<{ count: number; next_in_ms: number | null }[]>`
      select count(*)::int as count,
        extract(epoch from min(due_at) filter (where ${isAskedFor(this.#db)} and ${isOn(this.#db, isExternal)}) - now())
          ::float8 * 1000 as next_in_ms
      from repairs as r`;
    const { count, next_in_ms } = row!;
    return { count, nextInMs: next_in_ms === null ? null : Math.max(0, next_in_ms) };
  }

  /** Duration of a claim after `before` claims that were not settled. */
  #claimed(before: ReturnType<Db>) {
    return this.#db`least(${MAX_CLAIM_SECONDS},
      ${CLAIM_SECONDS} * power(2, greatest(0, ${before} - ${QUARANTINED_AFTER - 2}))) * interval '1 s'`;
  }

  async #insert({ base, tableRef, ids }: Repair): Promise<void> {
    const db = this.#db;
    const isThe =
      "id" in base
        ? db`id = ${base.id}`
        : db`platform = ${base.platform} and source_base_id = ${base.sourceBaseId}
            and id || ' ' || database_id || ' ' || schema_name <> all (${base.except.map(replicaKey)}::text[])`;
    // Locked: if the base is deleted at this moment, the repair is deleted with it instead of failing the insert.
    await db`
      insert into repairs (base_id, table_ref, record_id)
      select b.id, ${cleanText(tableRef)}, record_id
      from (select id from bases where ${isThe} and state <> 'deleting' for key share) as b,
        unnest(${[...new Set(ids)]}::text[]) as record_id
      where (select count(*) from repairs as r where r.base_id = b.id) < ${MAX_PER_BASE}
      on conflict (base_id, table_ref, record_id) do update
        set recorded_at = excluded.recorded_at, attempts = 0, due_at = case
          when repairs.unsettled >= ${QUARANTINED_AFTER} then greatest(repairs.due_at, excluded.due_at)
          else excluded.due_at end`;
  }
}

/**
 * Repairs of bases in state `needs_attention` wait until the base leaves it: the source may refuse their keys, and a
 * full check follows anyway.
 */
function isAskedFor(db: Db) {
  return db`not exists (select from bases as n where n.id = r.base_id and n.state = 'needs_attention')`;
}

function isOn(db: Db, isExternal: boolean) {
  return db`exists (
    select from bases as o join databases as d on d.id = o.database_id
    where o.id = r.base_id and (d.cluster_id is null) = ${isExternal})`;
}
