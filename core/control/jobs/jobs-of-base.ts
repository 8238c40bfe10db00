/** The jobs of one base, for the deletion of the base, which has no queue open. */
import type { Db } from "../../context";

const POLL_MS = 50;
/** How long a worker may take to notice that it must release a base. One that is frozen can no longer write in any case. */
const NOTICE_MS = 5000;

/** Waits until no worker holds the base, for a few seconds at most. */
export async function untilReleased(db: Db, baseId: string): Promise<void> {
  const until = performance.now() + NOTICE_MS;
  while ((await isHeld(db, baseId)) && performance.now() < until) await Bun.sleep(POLL_MS);
}

/** Deletes the base's jobs from the queue. */
export async function forgetJobs(db: Db, baseId: string): Promise<void> {
  if (await hasQueue(db)) await db`delete from pgboss.job where singleton_key = ${baseId}`;
}

async function isHeld(db: Db, baseId: string): Promise<boolean> {
  if (!(await hasQueue(db))) return false;
  const [active] = await db`
    select from pgboss.job where singleton_key = ${baseId} and state = 'active' limit 1`;
  return active !== undefined;
}

/** It does not exist before the first process has opened the queue. */
async function hasQueue(db: Db): Promise<boolean> {
  const [row] = await db<{ found: boolean }[]>`select to_regclass('pgboss.job') is not null as found`;
  return row!.found;
}
