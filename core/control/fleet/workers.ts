/** The fleet: which workers are alive, how many bases they hold, and how far behind the oldest base is. */
import type { Db } from "../../context";
import { type ProcessReport, reported, SILENCE } from "./processes";

/** After this time, its share goes to the other workers, which find its jobs free a moment later. */
const SHARE_SILENCE = "9 seconds";
/** A new worker gets bases of other workers only after this time: moves to a short-lived worker would be wasted. */
const SETTLED = "10 seconds";

interface WorkerReport extends Omit<ProcessReport, "role"> {
  /** Bases that it holds. */
  bases: number;
  /** The most bases that it takes. */
  capacity: number;
}

export interface WorkerStatus extends WorkerReport {
  seenAt: Date;
  isAlive: boolean;
}

export interface FleetState {
  /** By state for the service; `syncing` bases have been synced and will be synced again. */
  bases: { syncing: number; starting: number; paused: number; needsAttention: number };
  /** How far the most outdated base is behind that does not rest on purpose, in ms; null if there is none. */
  oldestLagMs: number | null;
  /** The id of that base. */
  oldestBaseId: string | null;
  oldestBaseName: string | null;
}

/** A worker that takes part in the distribution of bases. */
interface LivingWorker {
  id: string;
  bases: number;
  capacity: number;
  /** Whether it has run long enough to get bases that others hold. */
  isSettled: boolean;
}

/** Reports that the worker is alive; call it every few seconds. @returns all workers that are */
export async function reportWorker(db: Db, worker: WorkerReport): Promise<LivingWorker[]> {
  return db<LivingWorker[]>`
    with own as (${reported(db, { ...worker, role: "worker" })} returning *)
    select id, bases, capacity, joined_at < now() - ${SETTLED}::interval as "isSettled"
    from (
      select * from own
      union all
      select * from processes
      where role = 'worker' and id <> ${worker.id} and seen_at > now() - ${SHARE_SILENCE}::interval) as living`;
}

/** Returns those of the bases that run a first sync or a rebuild. */
export async function basesBuilding(db: Db, ids: string[]): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select id from bases where id = any (${ids}) and progress is not null`;
  return rows.map((row) => row.id);
}

/** Workers that are alive first, then by their last report. */
export async function listWorkers(db: Db): Promise<WorkerStatus[]> {
  return db<WorkerStatus[]>`
    select id, host, pid, started_at as "startedAt", seen_at as "seenAt", bases, capacity,
      seen_at > now() - ${SILENCE}::interval as "isAlive"
    from processes where role = 'worker' order by "isAlive" desc, host, started_at, id`;
}

/** The fleet's bases and how far behind they are. */
export async function fleetState(db: Db): Promise<FleetState> {
  const [row] = await db<(FleetState["bases"] & Omit<FleetState, "bases">)[]>`
    with oldest as (
      select id, name, extract(epoch from now() - shown_at)::float8 * 1000 as lag_ms
      from (
        -- A live base counts as current until its feed is due to be read.
        select b.id, b.name, case when f.state = 'on' and b.live and not b.rapid then least(f.due_at, now())
          else b.sync_started_at end as shown_at
        from bases as b left join live_feeds as f on f.base_id = b.id
        -- A base that waits for its call budget lags on purpose.
        where b.state = 'active' and (b.rests_until is null or b.rests_until < now())
      ) as shown
      where shown_at is not null order by shown_at limit 1
    )
    select
      count(*) filter (where state = 'active')::int as syncing,
      count(*) filter (where state = 'starting')::int as starting,
      count(*) filter (where state = 'paused')::int as paused,
      count(*) filter (where state = 'needs_attention')::int as "needsAttention",
      (select lag_ms from oldest) as "oldestLagMs", (select id from oldest) as "oldestBaseId",
      (select name from oldest) as "oldestBaseName"
    from bases`;
  const { oldestLagMs, oldestBaseId, oldestBaseName, ...bases } = row!;
  return { bases, oldestLagMs, oldestBaseId, oldestBaseName };
}
