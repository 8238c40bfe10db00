/** Closes the source's rate limiter for the bases of a moving account. */
import type { Sql, TransactionSql } from "postgres";
import { sqlLimitsOf } from "../../limiter";

type AnyDb = Sql | TransactionSql;

/** As long as permits rest after a rate limiter has lost its data, ms. */
const REOPENED_AFTER_MS = 4200;

/**
 * From now on, no process of the source sends a request for these keys, whatever it holds.
 *
 * @param closedMs longer than any request waits for a permit; a client that waits already is told this time
 */
export async function closeQuota(tx: AnyDb, keys: string[], closedMs: number): Promise<void> {
  for (const key of keys) {
    await tx`select quota_lock(${key})`;
    await tx`
      select quota_pause(${key}, ${sqlLimitsOf(key)}::source_limits, ${closedMs},
        extract(epoch from clock_timestamp())::float8 * 1000)`;
    await tx`select quota_announce(${key})`;
  }
}

/**
 * Undoes `closeQuota`, from a moment on when no request of another control plane counts any more. A pause that Airtable
 * has asked for is kept.
 */
export async function reopenQuota(tx: AnyDb, keys: string[]): Promise<void> {
  await tx`
    update quota_keys as k set blocked_until = greatest(
      extract(epoch from clock_timestamp())::float8 * 1000 + ${REOPENED_AFTER_MS}::float8,
      (select extract(epoch from b.blocked_until)::float8 * 1000 from quota_blocks as b where b.key = k.key))
    where key = any (${keys})`;
  for (const key of keys) await tx`select quota_announce(${key})`;
}
