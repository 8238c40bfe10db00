/**
 * Passes what a worker knows of a base's rows to the next one, through the replica, so that the next one need not compare
 * all rows in SQL: `sql/replica/handover.sql` says when it is valid.
 */
import { onReplica } from "./connection";
import type { Replica } from "./replica";

/** What is known of the rows of one table. */
export interface KnownRows {
  tableId: string;
  /** Of the table (`CatalogTable`). */
  shape: number;
  /** The recent-writes log has been read up to this applied version. */
  loggedUpTo: number;
  /** How long ago the rows were compared in SQL, ms. */
  comparedAgoMs: number;
  /** As `Fingerprints` packs them. */
  fingerprints: Uint8Array;
}

/**
 * Stores what this lease knows.
 *
 * @param program the version of the program: another one may map records to other rows
 * @throws BasetideError `lease_lost`
 */
export async function handOver(
  { sql, swap }: Replica,
  epoch: number,
  program: string,
  known: KnownRows[],
): Promise<void> {
  await onReplica(
    () => sql`
      select ${sql.unsafe(swap)}.hand_over(${epoch}, ${program}, ${known.map(({ tableId }) => tableId)}::text[],
        ${known.map(({ shape }) => shape)}::integer[], ${known.map(({ loggedUpTo }) => loggedUpTo)}::bigint[],
        ${known.map(({ comparedAgoMs }) => comparedAgoMs)}::float8[],
        ${known.map(({ fingerprints }) => Buffer.from(fingerprints).toString("hex"))}::text[])`,
  );
}

/** Returns what the lease `previousEpoch` has handed over, if this version of the program did. */
export function takeOver(
  { sql, swap }: Replica,
  previousEpoch: number,
  program: string,
): Promise<KnownRows[]> {
  return onReplica(
    () => sql<KnownRows[]>`
      select table_id as "tableId", shape, logged_up_to as "loggedUpTo",
        (extract(epoch from clock_timestamp() - compared_at) * 1000)::float8 as "comparedAgoMs", fingerprints
      from ${sql.unsafe(swap)}._known_rows where epoch = ${previousEpoch} and program = ${program}`,
  );
}
