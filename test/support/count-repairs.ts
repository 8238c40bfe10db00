import type { Db } from "../../core/context";

/** Counts the base's records that wait for repair. */
export async function countRepairs(db: Db, baseId: string): Promise<number> {
  const [row] = await db<{ count: number }[]>`
    select count(*)::int as count from repairs where base_id = ${baseId}`;
  return row!.count;
}
