/** Adds calls to a key's counts, as the processes that make them do. */
import type { Db } from "../../core/context";

/** @param at when they were made, ms since 1970; now unless given */
export async function countCalls(
  db: Db,
  key: string,
  calls: { sync: number; client: number; callers?: Record<string, number> },
  at = Date.now(),
): Promise<void> {
  const rows = [{ key, kinds: {}, callers: {}, ...calls }];
  await db`select quota_count(${JSON.stringify(rows)}::text::jsonb, 10, ${new Date(at)}::timestamptz)`;
}
