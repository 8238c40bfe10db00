/** Runs work that only one process may do at a time. */
import type { Db } from "../context";

/**
 * Runs `work` exclusively under `key`. @returns null, without running it, if another process is already running work
 */
export async function asOnly<T>(db: Db, key: string, work: () => Promise<T>): Promise<{ result: T } | null> {
  // A session lock: however this process ends, the lock is released.
  const lock = await db.reserve();
  try {
    const [taken] = await lock<{ is_mine: boolean }[]>`
      select pg_try_advisory_lock(hashtextextended(${key}, 0)) as is_mine`;
    if (!taken!.is_mine) return null;
    try {
      return { result: await work() };
    } finally {
      await lock`select pg_advisory_unlock(hashtextextended(${key}, 0))`.catch(() => {});
    }
  } finally {
    lock.release();
  }
}
