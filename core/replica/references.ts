/** Constraints that were created again with a column that got another type; see `sql/replica/column-parts.sql`. */
import postgres, { type TransactionSql } from "postgres";
import { onReplica, type ReplicaSql } from "./connection";
import type { Replica } from "./replica";

/** Longest time for what completes a change of shape, because a sync may wait for it. */
export const LONGEST_SETTLING_MS = 30_000;
/** While we wait for a lock on a table or a view, its readers wait behind us. */
const LOCK_MS = 1000;
/** SQLSTATE classes of what passes: a lost connection, a rollback, missing resources, a lock, a cancellation, a failure. */
const PASSING = /^(08|40|53|55|57|58)/;

interface Reference {
  relation: number;
  /** The table, qualified and quoted; null if it no longer exists. */
  table: string | null;
  name: string;
}

/**
 * Validates the constraints that were created without a check of the existing rows. One that rows violate, or that is not
 * ours to validate, is reported in `_sync_issues`; one that cannot be checked now is tried again at the next call.
 *
 * @returns whether there was none
 */
export async function checkReferences(replica: Replica): Promise<boolean> {
  const { sql, swap } = replica;
  const references = await onReplica(
    () => sql<Reference[]>`
      select r.relation::int8 as relation, r.name, k.conrelid::regclass::text as table
      from ${sql.unsafe(swap)}._references_to_check as r
        left join pg_constraint as k on k.conrelid = r.relation and k.conname = r.name
      order by r.relation, r.name`,
  );
  for (const reference of references) await checkReference(replica, reference);
  return references.length === 0;
}

async function checkReference({ sql, swap }: Replica, { relation, table, name }: Reference): Promise<void> {
  const checked = (error: string | null) =>
    onReplica(() => sql`select ${sql.unsafe(swap)}.reference_checked(${relation}, ${name}, ${error})`);
  try {
    if (table !== null) {
      await limited(sql, LONGEST_SETTLING_MS, async (tx) => {
        await tx`alter table ${tx.unsafe(table)} validate constraint ${tx(name)}`;
      });
    }
    await checked(null);
  } catch (error) {
    if (error instanceof postgres.PostgresError && !PASSING.test(error.code)) await checked(error.message);
  }
}

/** Runs `work` in a transaction that waits neither long for its statements nor for locks. */
export async function limited(
  sql: ReplicaSql,
  withinMs: number,
  work: (tx: TransactionSql<{ bigint: number }>) => Promise<void>,
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx.unsafe(`set local statement_timeout = ${withinMs}; set local lock_timeout = ${LOCK_MS}`);
    await work(tx);
  });
}
