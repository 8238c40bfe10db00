/** Closes the source's rate limiter for the bases of a moving account, and brings its counts up to date. */
import type { Sql, TransactionSql } from "postgres";

type AnyDb = Sql | TransactionSql;

/** As long as a rate limiter waits that has lost its data, ms. */
const REOPENED_AFTER_MS = 2350;

/**
 * From now on, no process of the source gets a reservation for these keys, whatever it has cached.
 *
 * @param closedMs longer than any request waits for a reservation; a client that waits already is told this time
 */
export async function closeQuota(tx: AnyDb, keys: string[], closedMs: number): Promise<void> {
  for (const key of keys) {
    await tx`select pg_advisory_xact_lock(hashtextextended(${`quota:${key}`}, 0))`;
    await tx`
      select quota_open(${key}, extract(epoch from clock_timestamp())::float8 * 1000)
      where not exists (select from quota_windows where key = ${key})`;
    await tx`
      update quota_windows set blocked_until = greatest(blocked_until,
        extract(epoch from clock_timestamp())::float8 * 1000 + ${closedMs}::float8)
      where key = ${key}`;
  }
}

/**
 * Undoes `closeQuota`, from a moment on when no request of another control plane counts any more. A pause that Airtable
 * has asked for is kept.
 */
export async function reopenQuota(tx: AnyDb, keys: string[]): Promise<void> {
  await tx`
    update quota_windows as w set blocked_until = greatest(
      extract(epoch from clock_timestamp())::float8 * 1000 + ${REOPENED_AFTER_MS}::float8,
      (select extract(epoch from b.blocked_until)::float8 * 1000 from quota_blocks as b where b.key = w.key))
    where key = any (${keys})`;
}

/** Adds the calls that are not counted in the months and days yet. */
export async function countQuota(tx: AnyDb, keys: string[]): Promise<void> {
  await tx`
    select quota_count(key, counted_from, sync_calls, client_calls) from quota_windows where key = any (${keys})`;
  await tx`update quota_windows set sync_calls = 0, client_calls = 0 where key = any (${keys})`;
}
