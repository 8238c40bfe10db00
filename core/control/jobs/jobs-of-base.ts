/** The jobs of one base as those see them who take the base away, and have no queue open. */
import type { Db } from "../../context";

const POLL_MS = 50;

/** Waits until no worker has the base in hand. @returns false when one still has after `timeoutMs` */
export async function untilReleased(db: Db, baseId: string, timeoutMs: number): Promise<boolean> {
  const until = performance.now() + timeoutMs;
  while (await isHeld(db, baseId)) {
    if (performance.now() >= until) return false;
    await Bun.sleep(POLL_MS);
  }
  return true;
}

/** Deletes what the queue has of the base. */
export async function forgetJobs(db: Db, baseId: string): Promise<void> {
  if (await hasQueue(db)) await db`delete from pgboss.job where singleton_key = ${baseId}`;
}

async function isHeld(db: Db, baseId: string): Promise<boolean> {
  if (!(await hasQueue(db))) return false;
  const [active] = await db`
    select from pgboss.job where singleton_key = ${baseId} and state = 'active' limit 1`;
  return active !== undefined;
}

/** Before the first process has opened the queue there is none. */
async function hasQueue(db: Db): Promise<boolean> {
  const [row] = await db<{ found: boolean }[]>`select to_regclass('pgboss.job') is not null as found`;
  return row!.found;
}
