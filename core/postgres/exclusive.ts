/** Work that one process of all does at a time. */
import type { Db } from "../context";

/** Runs `work` as the only one under `key`. @returns null, without doing anything, when somebody does already */
export async function asOnly<T>(db: Db, key: string, work: () => Promise<T>): Promise<{ result: T } | null> {
  // Of the session: whatever ends this process, the next one finds the key free.
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
