/** Optional features of a replica, by the base's settings: `sql/replica/link-views.sql` and `changes.sql`. */
import { LOCK_TIMEOUT } from "./change-shape";
import { onReplica } from "./connection";
import type { Replica } from "./replica";

interface OptionalFeatures {
  /** A view for each array of links: one row per link. */
  linkViews: boolean;
  /** Changes of records are recorded in `_sync_history`. */
  history: boolean;
  /** Changes of records are published on the channel `basetide`. */
  notify: boolean;
  /** After a rename, the old name answers for so many days. */
  aliasDays: number;
}

/** Changes deleted in one statement. */
const TRIM_BATCH = 10_000;

/**
 * Applies the settings to changes from now on.
 *
 * @returns false if history is enabled but cannot be recorded: the customer has a table of that name
 * @throws BasetideError `lease_lost`
 */
export function applySettings(
  { sql, swap }: Replica,
  epoch: number,
  wanted: Pick<OptionalFeatures, "history" | "notify"> & Partial<Pick<OptionalFeatures, "aliasDays">>,
): Promise<boolean> {
  return onReplica(async () => {
    const [answer] = await sql<{ followed: boolean }[]>`
      select ${sql.unsafe(swap)}.apply_settings(
        ${epoch}, ${wanted.history}, ${wanted.notify}, ${wanted.aliasDays ?? 0}) as followed`;
    return answer!.followed;
  });
}

/**
 * Creates the views over links, or drops them. After that they follow every change of shape by themselves. Drops the
 * views of old names that have expired.
 *
 * @throws BasetideError `replica_busy` if queries hold a view that must be dropped (try again), `lease_lost`
 */
export async function applyLinkViews(
  { sql, swap }: Replica,
  epoch: number,
  isWanted: boolean,
): Promise<void> {
  await onReplica(
    () => sql`select ${sql.unsafe(swap)}.apply_link_views(${epoch}, ${LOCK_TIMEOUT}, ${isWanted})`,
  );
}

/**
 * Deletes changes that were recorded more than `days` days ago. If history is off, the table is dropped with its last
 * row.
 *
 * @throws BasetideError `lease_lost`
 */
export async function trimHistory({ sql, swap }: Replica, epoch: number, days: number): Promise<void> {
  for (let trimmed = TRIM_BATCH; trimmed === TRIM_BATCH; ) {
    const [answer] = await onReplica(
      () => sql<{ trimmed: number }[]>`
        select ${sql.unsafe(swap)}.trim_history(${epoch}, ${days}, ${TRIM_BATCH}) as trimmed`,
    );
    trimmed = answer!.trimmed;
  }
}

/** A view over an array of links, as readers see it. */
export interface LinkView {
  name: string;
  /** Ids of the array's table and field. */
  tableId: string;
  fieldId: string;
  /** Its columns for the linking record and the linked record. */
  columns: [string, string];
}

/** Returns the existing views over links. Empty if the last sync ran with an older version of Basetide. */
export function loadLinkViews({ sql, swap }: Replica): Promise<LinkView[]> {
  return onReplica(async () => {
    const [state] = await sql<{ knows: boolean }[]>`
      select to_regclass(${`${swap}._link_views`}) is not null as knows`;
    if (!state?.knows) return [];
    return sql<LinkView[]>`
      select name, table_id as "tableId", field_id as "fieldId", columns
      from ${sql.unsafe(swap)}._link_views order by name`;
  });
}
