/**
 * What keeps a base's replica from equaling the source, as the worker that holds the base finds it. A sync's own failure
 * is the base's error, and not among them.
 */
import type { Db } from "../../context";
import { cleanText, jsonParameter, storedMessage } from "../../postgres";
import type { FoundProblem } from "../../sync/host";

/** The most problems that are stored. */
const MOST = 100;

/** Replaces the base's problems. */
export async function recordProblems(db: Db, baseId: string, found: FoundProblem[]): Promise<void> {
  const rows = found.slice(0, MOST).map(({ tableId, agoMs, nextInMs, ...problem }) => ({
    ...problem,
    name: cleanText(problem.name),
    message: storedMessage(problem.message),
    table_id: tableId,
    ago_ms: agoMs,
    next_in_ms: nextInMs,
  }));
  await db`
    update bases set problems = (
      select coalesce(jsonb_agg(jsonb_build_object('kind', kind, 'tableId', table_id, 'name', name, 'message', message,
        'since', floor(now_ms - ago_ms), 'nextAt', floor(now_ms + next_in_ms))), '[]')
      from jsonb_to_recordset(${jsonParameter(rows)}::text::jsonb)
        as p (kind text, table_id text, name text, message text, ago_ms float8, next_in_ms float8),
        (select extract(epoch from clock_timestamp()) * 1000 as now_ms) as clock
    )
    where id = ${baseId}`;
}
