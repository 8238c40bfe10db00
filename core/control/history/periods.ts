/** Periods in which a base is not current, and why: written when that changes, read by charts and the status page. */
import type { TransactionSql } from "postgres";
import type { Db } from "../../context";
import { jsonParameter } from "../../postgres";
import { indicatorOf, type StatusFacts, statusOf } from "../status";

/** A period of this kind that ended a moment ago goes on: a paced base is current for a moment after each sync. */
const REJOINED = "10 minutes";
const REJOINED_FAULT = "30 seconds";

/** `outage`: the indicator is red; `delay`: yellow; `pause`: by a person; `budget`: for the call budget. */
export type PeriodKind = "outage" | "delay" | "pause" | "budget";

export interface Period {
  kind: PeriodKind;
  label: string;
  beganAt: Date;
  /** Null: it goes on. */
  endedAt: Date | null;
  /** As of when the data was complete when it began. */
  asOf: Date | null;
}

export type CurrentPeriod = Pick<Period, "kind" | "label" | "asOf">;

/** Returns the period that the base is in; null if it is current, has no data yet, or is being deleted. */
export function periodOf(base: StatusFacts, now: Date): CurrentPeriod | null {
  const { color, cause } = indicatorOf(base, now);
  // Without a feed the base is swept, and judged by that.
  if (!base.sync || cause === "ok" || cause === "live_off" || cause === "moving" || cause === "deleting")
    return null;
  const { word, asOf } = statusOf(base, now);
  const isBudget = cause === "paced" || base.error?.code === "budget_spent";
  const kind = cause === "paused" ? "pause" : isBudget ? "budget" : color === "red" ? "outage" : "delay";
  return { kind, label: word, asOf };
}

/** Saves what has changed since the last time: usually nothing. @param seen all bases that were observed */
export async function savePeriods(
  tx: TransactionSql,
  seen: Map<string, CurrentPeriod | null>,
  now: Date,
): Promise<void> {
  const rows = await tx<{ baseId: string; kind: PeriodKind; label: string }[]>`
    select base_id as "baseId", kind, label from base_periods where ended_at is null`;
  const open = new Map(rows.map((row) => [row.baseId, row]));
  const isOther = (baseId: string, period: CurrentPeriod | null) => {
    const before = open.get(baseId);
    return before?.kind !== period?.kind || before?.label !== period?.label;
  };
  const changed = [...seen].filter(([baseId, period]) => isOther(baseId, period));
  const ended = changed.map(([baseId]) => baseId).filter((baseId) => open.has(baseId));
  const begun = changed.flatMap(([baseId, period]) =>
    period ? [{ base_id: baseId, kind: period.kind, label: period.label, as_of: period.asOf }] : [],
  );
  if (ended.length > 0) {
    await tx`
      update base_periods set ended_at = greatest(began_at, ${now}) where base_id = any (${ended}) and ended_at is null`;
  }
  if (begun.length === 0) return;
  await tx`
    with given as (
      select * from jsonb_to_recordset(${jsonParameter(begun)}::text::jsonb)
        as g (base_id text, kind text, label text, as_of timestamptz)
    ), rejoined as (
      update base_periods as p set ended_at = null
      from given as g
      where p.id = (select l.id from base_periods as l where l.base_id = g.base_id order by l.began_at desc, l.id desc limit 1)
        and p.kind = g.kind and p.label = g.label
        and p.ended_at > ${now}::timestamptz
          - case p.kind when 'budget' then ${REJOINED} else ${REJOINED_FAULT} end::interval
      returning p.base_id
    )
    insert into base_periods (base_id, kind, label, began_at, as_of)
    select g.base_id, g.kind, g.label, ${now}, g.as_of
    from given as g
    where g.base_id not in (select base_id from rejoined)
      and exists (select from bases as b where b.id = g.base_id for key share)`;
}

/** Returns the periods that overlap the time from `since` on, the oldest first. */
export async function listPeriods(db: Db, baseId: string, since: Date): Promise<Period[]> {
  return db<Period[]>`
    select kind, label, began_at as "beganAt", ended_at as "endedAt", as_of as "asOf"
    from base_periods where base_id = ${baseId} and (ended_at is null or ended_at > ${since})
    order by began_at, id`;
}
