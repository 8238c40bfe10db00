/**
 * A customer who reads every table in a loop, and records what must never be visible: half-filled tables and columns.
 */
import { readerOf } from "./replica";

export interface Watcher {
  /** Violations that were seen. */
  wrong: string[];
  reads: number;
  stop(): Promise<void>;
}

/**
 * Columns called "odd…" may have cells without a value, and are not checked.
 *
 * @param isExempt called with the name of a half-filled column
 */
export function watchForHalves(url: string, isExempt: (column: string) => boolean = () => false): Watcher {
  const watcher: Watcher = { wrong: [], reads: 0, stop: async () => {} };
  let isOver = false;
  const work = (async () => {
    await using reader = readerOf(url);
    while (!isOver) {
      const from = performance.now();
      const tables = await reader<{ name: string }[]>`
        select relname as name from pg_class
        where relnamespace = 'public'::regnamespace and relkind = 'r' and relname !~ '^_'`;
      for (const { name } of tables) {
        try {
          // One statement, so one snapshot. Not prepared: a plan may outlive its table.
          const rows = await reader.unsafe(`
            select v.key, count(*)::int as rows, count(v.value)::int as filled
            from public."${name}" as t, jsonb_each_text(to_jsonb(t)) as v where v.key !~ '^odd' group by v.key`);
          watcher.reads++;
          if (rows.length === 0) watcher.wrong.push(`${name} is empty`);
          for (const { key, rows: all, filled } of rows) {
            if (filled !== 0 && filled !== all && !isExempt(key))
              watcher.wrong.push(`${name}.${key}: ${filled} of ${all}`);
          }
        } catch (error) {
          const { code } = error as { code?: string };
          if (code !== "42P01") watcher.wrong.push(`${name}: ${error}`);
        }
      }
      // Half of the time: without a pause, the reader alone keeps a core busy.
      await Bun.sleep(performance.now() - from);
    }
  })();
  watcher.stop = async () => {
    isOver = true;
    await work;
  };
  return watcher;
}
