/** Optional features of a replica, by the base's settings: `sql/replica/link-views.sql` and `changes.sql`. */
import { onReplica, readValue } from "./connection";
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
  return readValue(
    () => sql<{ value: boolean }[]>`
      select ${sql.unsafe(swap)}.apply_settings(
        ${epoch}, ${wanted.history}, ${wanted.notify}, ${wanted.aliasDays ?? 0}) as value`,
  );
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
  await onReplica(() => sql`select ${sql.unsafe(swap)}.apply_link_views(${epoch}, ${isWanted})`);
}

/**
 * Deletes changes that were recorded more than `days` days ago. If history is off, the table is dropped with its last
 * row.
 *
 * @throws BasetideError `lease_lost`
 */
export async function trimHistory({ sql, swap }: Replica, epoch: number, days: number): Promise<void> {
  for (let trimmed = TRIM_BATCH; trimmed === TRIM_BATCH; ) {
    trimmed = await readValue(
      () => sql<{ value: number }[]>`
        select ${sql.unsafe(swap)}.trim_history(${epoch}, ${days}, ${TRIM_BATCH}) as value`,
    );
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

/** A view over attachments, as readers see it. */
export interface AttachmentView extends LinkView {
  /** Its columns for the record and the attachment's id; the others are `ATTACHMENT_DETAILS`. */
  columns: [string, string];
}

/** The columns of a view over attachments that are named alike in all of them, after the position and the id. */
export const ATTACHMENT_DETAILS = [
  { name: "filename", type: "text" },
  { name: "type", type: "text" },
  { name: "size", type: "bigint" },
  { name: "width", type: "integer" },
  { name: "height", type: "integer" },
  { name: "url", type: "text" },
] as const;

/** The views of a replica, by name. */
export interface ReplicaViews {
  linkViews: LinkView[];
  attachmentViews: AttachmentView[];
}

/** Returns the existing views over links and attachments. */
export function loadViews({ sql, swap }: Replica): Promise<ReplicaViews> {
  return onReplica(async () => {
    const ours = sql.unsafe(swap);
    const views = await sql<(LinkView & { filesOf: string | null })[]>`
      with files as materialized (
        select t.table_id, c."fieldId" as field_id, c."filesOf"
        from ${ours}._tables as t
          cross join jsonb_to_recordset(t.spec -> 'columns') as c ("fieldId" text, "filesOf" text)
        where t.has_files and c."filesOf" is not null
      )
      select v.name, v.table_id as "tableId", v.field_id as "fieldId", v.columns, f."filesOf"
      from ${ours}._link_views as v left join files as f using (table_id, field_id)
      order by v.name`;
    const [files, links] = [views.filter(({ filesOf }) => filesOf), views.filter(({ filesOf }) => !filesOf)];
    return {
      linkViews: links.map(({ filesOf: _, ...view }) => view),
      attachmentViews: files.map(({ filesOf, ...view }) => ({ ...view, fieldId: filesOf! })),
    };
  });
}
