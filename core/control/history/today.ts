/** What the list of bases shows with their states: the calls of the day, and the lag of the last day. */
import type { Db } from "../../context";
import { DAY_MS, HOUR_MS, utcDay } from "../../time-units";

export interface BaseToday {
  /** Calls to the source since midnight (UTC), by sync and by clients. */
  calls: number;
  /** The greatest age of the data in each of the last 24 hours that are over; null: nothing was synced. */
  lagMs: (number | null)[];
}

export const HOURS = DAY_MS / HOUR_MS;

/** Returns them for the rows `b` of bases that match `where`, in one query. */
export async function todayOf(db: Db, where: ReturnType<Db>, now: Date): Promise<Map<string, BaseToday>> {
  const today = utcDay(now);
  type Row = { id: string; calls: number; before: (number | null)[] | null; lag: (number | null)[] | null };
  const [row] = await db<{ bases: Row[] }[]>`
    select coalesce(json_agg(r), '[]') as bases from (
      select b.id,
        (select coalesce(sum(c), 0)::float8 from unnest(q.sync || q.client) as c) as calls,
        y.lag_max_ms as before, t.lag_max_ms as lag
      from bases as b
        left join quota_days as q on q.key = b.platform || ':' || b.source_base_id and q.day = ${today}::date
        left join base_days as t on t.base_id = b.id and t.day = ${today}::date
        left join base_days as y on y.base_id = b.id and y.day = ${today}::date - 1
      where ${where}
    ) as r`;
  const empty = Array<number | null>(HOURS).fill(null);
  const hour = now.getUTCHours();
  return new Map(
    row!.bases.map(({ id, calls, before, lag }) => [
      id,
      { calls, lagMs: [...(before ?? empty), ...(lag ?? empty)].slice(hour, hour + HOURS) },
    ]),
  );
}
