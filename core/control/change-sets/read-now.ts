/**
 * Reads records from the source as they are now, with the base's own key: what a proposal relies on, and what its
 * reviewer compares it with.
 *
 * I4. Every request acquires a client's permit, and counts in the base's budget: one for 100 records.
 */
import type { Context } from "../../context";
import { MeteredSource, type RateLimiter } from "../../limiter";
import { limitsOfKey, type Platform, platformById } from "../../source";
import { type Base, connectOwn, sourceAccess } from "../bases";
import { quotaKeyOf } from "../budgets";
import type { CellValues } from "./operations";

/** Cells by the ids of their fields, by record; a record that does not exist is missing. */
export type RecordsNow = ReadonlyMap<string, CellValues>;

/**
 * @param wanted ids of records by the source's id of their table
 * @throws BasetideError `source_…`, `quota_timeout`, `secret_unreadable`, `control_unavailable`
 */
export async function readRecordsNow(
  ctx: Pick<Context, "config" | "db" | "secrets"> & { limiter: RateLimiter; platforms: Platform[] },
  base: Base,
  wanted: ReadonlyMap<string, readonly string[]>,
): Promise<RecordsNow> {
  const { config, limiter } = ctx;
  const signal = AbortSignal.timeout(2 * config.upstreamTimeoutMs);
  const source = new MeteredSource({
    connection: connectOwn(ctx, platformById(ctx.platforms, base.platform), await sourceAccess(ctx, base.id)),
    sourceBaseId: base.sourceBaseId,
    limiter,
    quotaKey: quotaKeyOf(base),
    queue: {
      priority: "client",
      deadlineMs: config.upstreamTimeoutMs,
      signal,
      isOwnKey: true,
      shownAs: "console",
    },
    signal,
  });
  const found = new Map<string, CellValues>();
  const { pageSize } = limitsOfKey(quotaKeyOf(base));
  for (const [tableId, ids] of wanted) {
    const distinct = [...new Set(ids)];
    for (let from = 0; from < distinct.length; from += pageSize) {
      const records = await source.listRecords(tableId, distinct.slice(from, from + pageSize));
      for (const { id, fields } of records) found.set(id, fields as CellValues);
    }
  }
  return found;
}
