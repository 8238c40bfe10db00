/** The fleet: which workers are alive, what they have in hand, and how far behind the oldest base is. */
import type { Db } from "../../context";

/** A worker that was not heard of for so long is shown as dead. */
const SILENCE = "15 seconds";
/** And after so long its share is the others', who have to find its jobs free a moment later. */
const SHARE_SILENCE = "9 seconds";
/** So long after it came a worker is given what others hold: one that does not last would only cost them. */
const SETTLED = "10 seconds";
/** Rows of workers that died without a word are kept for so long, to be seen. */
const KEPT = "1 day";

export interface WorkerReport {
  id: string;
  host: string;
  pid: number;
  startedAt: Date;
  /** Bases in hand. */
  bases: number;
  /** Bases that it takes at most. */
  capacity: number;
}

export interface WorkerStatus extends WorkerReport {
  seenAt: Date;
  isAlive: boolean;
}

export interface FleetState {
  /** By what they are to the service; `syncing` have been synced and are to be synced on. */
  bases: { syncing: number; starting: number; paused: number; needsAttention: number };
  /** How far behind the base is that is furthest behind, in ms; null without one that syncs. */
  oldestLagMs: number | null;
  /** That base's id. */
  oldestBaseId: string | null;
}

/** Says that the worker is alive. To be called every few seconds. */
export async function reportWorker(db: Db, worker: WorkerReport): Promise<void> {
  await db`
    insert into workers (id, host, pid, started_at, seen_at, bases, capacity)
    values (${worker.id}, ${worker.host}, ${worker.pid}, ${worker.startedAt}, now(), ${worker.bases},
      ${worker.capacity})
    on conflict (id) do update set seen_at = now(), bases = excluded.bases`;
}

/** A worker among whom the bases are shared out. */
export interface LivingWorker {
  id: string;
  bases: number;
  capacity: number;
  /** Has it been here for long enough to be given what others hold? */
  isSettled: boolean;
}

export async function livingWorkers(db: Db): Promise<LivingWorker[]> {
  return db<LivingWorker[]>`
    select id, bases, capacity, joined_at < now() - ${SETTLED}::interval as "isSettled"
    from workers where seen_at > now() - ${SHARE_SILENCE}::interval`;
}

/** Which of these bases have their first sync or a rebuild under way. */
export async function basesBuilding(db: Db, ids: string[]): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select id from bases where id = any (${ids}) and progress is not null`;
  return rows.map((row) => row.id);
}

/** The worker has stopped. What others left behind without a word, and old counts, go with it. */
export async function removeWorker(db: Db, id: string): Promise<void> {
  await db`delete from workers where id = ${id} or seen_at < now() - ${KEPT}::interval`;
  await db`delete from quota_minutes where minute < now() - interval '1 hour'`;
}

/** The living first, then the latest to be heard of. */
export async function listWorkers(db: Db): Promise<WorkerStatus[]> {
  return db<WorkerStatus[]>`
    select id, host, pid, started_at as "startedAt", seen_at as "seenAt", bases, capacity,
      seen_at > now() - ${SILENCE}::interval as "isAlive"
    from workers order by "isAlive" desc, host, started_at, id`;
}

/** What is asked of the fleet, and how it keeps up. */
export async function fleetState(db: Db): Promise<FleetState> {
  const [row] = await db<
    (FleetState["bases"] & { oldestLagMs: number | null; oldestBaseId: string | null })[]
  >`
    with oldest as (
      select id, extract(epoch from now() - shown_at)::float8 * 1000 as lag_ms
      from (
        -- A live base shows what is until its feed ought to have been read.
        select b.id, case when f.state = 'on' and b.live and not b.rapid then least(f.due_at, now())
          else b.sync_started_at end as shown_at
        from bases as b left join live_feeds as f on f.base_id = b.id
        where b.state = 'active'
      ) as shown
      where shown_at is not null order by shown_at limit 1
    )
    select
      count(*) filter (where state = 'active')::int as syncing,
      count(*) filter (where state = 'starting')::int as starting,
      count(*) filter (where state = 'paused')::int as paused,
      count(*) filter (where state = 'needs_attention')::int as "needsAttention",
      (select lag_ms from oldest) as "oldestLagMs", (select id from oldest) as "oldestBaseId"
    from bases`;
  const { oldestLagMs, oldestBaseId, ...bases } = row!;
  return { bases, oldestLagMs, oldestBaseId };
}
