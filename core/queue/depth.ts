/** How many sync jobs wait, and how many are in hand. */
import type { Db } from "../context";

export async function queueDepth(db: Db): Promise<{ waiting: number; active: number }> {
  const [row] = await db<{ waiting: number; active: number }[]>`
    select count(*) filter (where state in ('created', 'retry'))::int as waiting,
      count(*) filter (where state = 'active')::int as active
    from pgboss.job where name = 'sync' and state in ('created', 'retry', 'active')`;
  return row!;
}
