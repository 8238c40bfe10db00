/**
 * Records that the source has written and a replica may not show, kept in the control plane until somebody has
 * repaired them; in memory while the control plane is away.
 */

import { withTimeout } from "../async";
import type { Db } from "../context";
import { REPAIR_CLAIMS } from "../control/jobs";
import type { Logger } from "../log";
import { asControlError, cleanText } from "../postgres";
import {
  type ConnectedBase,
  type ConnectedRow,
  connectedColumns,
  replicaKey,
  toConnected,
} from "./connected-bases";
import type { WriteMetrics } from "./metrics";

/** A control plane that does not take a note within this counts as away, ms. */
const RECORD_MS = 1000;
/** Repairs of one base that are taken at once: the ids of one request to the source. */
const BATCH = 100;
/**
 * A claim that was not settled after this comes up again, s: its process has died. From the third in a row on it takes
 * twice as long each time: what ends proxies ends few of them.
 */
const CLAIM_SECONDS = 60;
const MAX_CLAIM_SECONDS = 3600;
const FIRST_PAUSE_SECONDS = 1;
const MAX_PAUSE_SECONDS = 300;
/** Repairs of one base that are kept; past them its next sync brings what is missing. */
const MAX_PER_BASE = 10_000;
/** Notes kept in memory; past it the next sync has to repair them. */
const MAX_IN_MEMORY = 100_000;

export interface Repair {
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
  records: { id: string; recordedAt: string }[];
}

export class Repairs {
  readonly #db: Db;
  readonly #log: Logger;
  readonly #metrics: WriteMetrics;
  #inMemory: Repair[] = [];
  /** Called after each note. */
  onRecorded: () => void = () => {};

  constructor(ctx: { db: Db; log: Logger }, metrics: WriteMetrics) {
    this.#db = ctx.db;
    this.#log = ctx.log;
    this.#metrics = metrics;
  }

  get inMemory(): number {
    return this.#inMemory.length;
  }

  /** Notes repairs; never fails, and takes a second at most. */
  async record(repair: Repair): Promise<void> {
    if (repair.ids.length === 0) return;
    try {
      await withTimeout(RECORD_MS, "control_unavailable", this.#insert(repair));
      this.#metrics.repairRecorded(repair.ids.length);
      this.onRecorded();
    } catch (error) {
      this.#log.warn({ error, records: repair.ids.length }, "repair kept in memory");
      this.keepInMemory(repair);
    }
  }

  /** Keeps a note in memory until the control plane, known to be away, is back. */
  keepInMemory(repair: Repair): void {
    if (repair.ids.length === 0) return;
    if (this.#inMemory.length >= MAX_IN_MEMORY) {
      this.#log.error({ records: repair.ids.length }, "repair dropped; the next sync repairs it");
      return;
    }
    this.#metrics.repairRecorded(repair.ids.length);
    this.#inMemory.push(repair);
  }

  /** Moves what is in memory to the control plane. Fails where that is still away. */
  async flush(): Promise<void> {
    if (this.#inMemory.length === 0) return;
    while (this.#inMemory[0]) {
      try {
        await this.#insert(this.#inMemory[0]);
      } catch (error) {
        // One that nobody can take must not keep the others here for ever.
        if (asControlError(error).code === "control_unavailable") throw error;
        this.#log.error({ error }, "repair dropped; the next sync repairs it");
      }
      this.#inMemory.shift();
    }
    this.onRecorded();
  }

  /**
   * The repairs of one table that are due, for this process alone; null if there are none.
   *
   * @param isExternal of databases on customers' own servers, or of hosted ones
   */
  async claim(isExternal: boolean): Promise<Claim | null> {
    const rows = await this.#db<
      (ConnectedRow & { table_ref: string; record_id: string; recorded_at: string })[]
    >`
      with first as (
        select base_id, table_ref from repairs as r
        where due_at <= now() and ${isAskedFor(this.#db)} and ${isOn(this.#db, isExternal)}
          and not exists (
            select from repairs as deadly
            where deadly.base_id = r.base_id and deadly.unsettled >= ${REPAIR_CLAIMS} and deadly.due_at > now())
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

  /** Drops what was repaired, but for what was noted again meanwhile. */
  async done({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      delete from repairs as r
      using unnest(${records.map(({ id }) => id)}::text[], ${records.map(({ recordedAt }) => recordedAt)}::text[])
        as mended (record_id, recorded_at)
      where r.base_id = ${base.id} and r.table_ref = ${tableRef} and r.record_id = mended.record_id
        and r.recorded_at = mended.recorded_at::timestamptz`;
    this.#metrics.repairDone(records.length);
  }

  /** Keeps a claim from coming up again while it is being repaired, but for what was noted again meanwhile. */
  async renew({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      update repairs as r set due_at = now() + ${this.#claimed(this.#db`r.unsettled - 1`)}
      from unnest(${records.map(({ id }) => id)}::text[], ${records.map(({ recordedAt }) => recordedAt)}::text[])
        as claimed (record_id, recorded_at)
      where r.base_id = ${base.id} and r.table_ref = ${tableRef} and r.record_id = claimed.record_id
        and r.recorded_at = claimed.recorded_at::timestamptz`;
  }

  /** Puts a claim off; each try that fails doubles the pause. */
  async reschedule({ base, tableRef, records }: Claim): Promise<void> {
    await this.#db`
      update repairs
      set unsettled = 0,
        due_at = now() + least(${FIRST_PAUSE_SECONDS} * power(2, least(attempts - 1, 20)), ${MAX_PAUSE_SECONDS})
        * interval '1 second'
      where base_id = ${base.id} and table_ref = ${tableRef}
        and record_id = any (${records.map(({ id }) => id)})`;
  }

  /** How many wait in the control plane, and how long it is until the next of these is due, ms (null: none). */
  async pending(isExternal: boolean): Promise<{ count: number; nextInMs: number | null }> {
    const [row] = await this.#db<{ count: number; next_in_ms: number | null }[]>`
      select count(*)::int as count,
        extract(epoch from min(due_at) filter (where ${isAskedFor(this.#db)} and ${isOn(this.#db, isExternal)}) - now())
          ::float8 * 1000 as next_in_ms
      from repairs as r`;
    const { count, next_in_ms } = row!;
    return { count, nextInMs: next_in_ms === null ? null : Math.max(0, next_in_ms) };
  }

  /** How long a claim lasts, with so many before it that were not settled. */
  #claimed(before: ReturnType<Db>) {
    return this.#db`least(${MAX_CLAIM_SECONDS},
      ${CLAIM_SECONDS} * power(2, greatest(0, ${before} - ${REPAIR_CLAIMS - 2}))) * interval '1 s'`;
  }

  async #insert({ base, tableRef, ids }: Repair): Promise<void> {
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
      where (select count(*) from repairs as r where r.base_id = b.id) < ${MAX_PER_BASE}
      on conflict (base_id, table_ref, record_id) do update
        set recorded_at = excluded.recorded_at, attempts = 0, due_at = case
          when repairs.unsettled >= ${REPAIR_CLAIMS} then greatest(repairs.due_at, excluded.due_at)
          else excluded.due_at end`;
  }
}

/**
 * Repairs of bases that need a person wait until that is over: the source may refuse their keys, and what comes then is a
 * whole sync.
 */
function isAskedFor(db: Db) {
  return db`not exists (select from bases as n where n.id = r.base_id and n.state = 'needs_attention')`;
}

function isOn(db: Db, isExternal: boolean) {
  return db`exists (
    select from bases as o join databases as d on d.id = o.database_id
    where o.id = r.base_id and (d.cluster_id is null) = ${isExternal})`;
}
