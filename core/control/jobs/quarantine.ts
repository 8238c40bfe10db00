/** Lists everything that is quarantined because it crashed processes, for the operator. */
import type { Db } from "../../context";
import { forgetTask, QUARANTINED_AFTER, type QuarantinedTask, quarantinedTasks } from "./task-attempts";

export interface Quarantine {
  /** Bases whose syncs crashed processes. */
  baseIds: string[];
  /** Deletions and other tasks. */
  tasks: QuarantinedTask[];
  /** Records whose repair crashed proxies, by base. */
  repairs: { baseId: string; records: number }[];
}

export async function quarantine(db: Db): Promise<Quarantine> {
  const bases = await db<{ id: string }[]>`
    select base_id as id from base_crashes where quarantines > 0 order by base_id`;
  const repairs = await db<Quarantine["repairs"]>`
    select base_id as "baseId", count(*)::int as records from repairs
    where unsettled >= ${QUARANTINED_AFTER} group by base_id order by base_id`;
  return { baseIds: bases.map(({ id }) => id), tasks: await quarantinedTasks(db), repairs: [...repairs] };
}

/**
 * Allows another try of everything that is quarantined for this base or database. A base remains a suspect: it is
 * synced in a child process.
 *
 * @returns whether a sync of it was quarantined
 */
export async function retryQuarantined(db: Db, subject: string): Promise<boolean> {
  for (const task of ["move", "stray"] as const) await forgetTask(db, { task, subject });
  const { count } = await db`
    update base_crashes set quarantined_until = null, suspected_at = least(suspected_at, now() - interval '1 minute')
    where base_id = ${subject} and quarantines > 0`;
  return count > 0;
}
