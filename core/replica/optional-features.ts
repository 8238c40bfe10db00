/** What a replica has besides the rows, by the base's settings: `sql/replica/link-views.sql` and `changes.sql`. */
import { LOCK_TIMEOUT } from "./change-shape";
import { onReplica } from "./connection";
import type { Replica } from "./replica";

export interface OptionalFeatures {
  /** A view for each array of links: one row per link. */
  linkViews: boolean;
  /** Changes of records are noted in `_sync_history`. */
  history: boolean;
  /** Changes of records are told to whoever listens to the channel `basetide`. */
  notify: boolean;
}

/** Changes that are forgotten in one statement. */
const TRIM_BATCH = 10_000;

/**
 * Whatever changes from now on is noted and told of as `wanted` says.
 *
 * @returns false when history is wanted and cannot be kept: the customer has a table of its name
 * @throws BasetideError `lease_lost`
 */
export function applySettings(
  { sql, swap }: Replica,
  epoch: number,
  wanted: Pick<OptionalFeatures, "history" | "notify">,
): Promise<boolean> {
  return onReplica(async () => {
    const [answer] = await sql<{ followed: boolean }[]>`
      select ${sql.unsafe(swap)}.apply_settings(${epoch}, ${wanted.history}, ${wanted.notify}) as followed`;
    return answer!.followed;
  });
}

/**
 * Makes the views over links, or takes them away. From then on they follow every change of shape by themselves.
 *
 * @throws BasetideError `replica_busy` when queries hold one that has to go; try again. `lease_lost`
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
 * Forgets changes that were noted more than so many days ago. Where none are noted any more, the table goes with the
 * last of them.
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
  /** Of the array's table and field. */
  tableId: string;
  fieldId: string;
  /** Its columns for the record that links and the record that is linked. */
  columns: [string, string];
}

/** The views over links that there are. None where an older version of Basetide was the last to sync. */
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
