/** The log of schema changes of replicas, and requests for schema checks. Stored for a year. */
import type { Db } from "../../context";
import { jsonParameter } from "../../postgres";
import {
  type Severity,
  type ShapeChange,
  type ShapeChangeKind,
  type ShapeName,
  severityOf,
} from "../../replica";
import { SCHEMA_CHANGES_KEPT } from "../retention";

export interface SchemaChange {
  id: string;
  seen_at: Date;
  kind: ShapeChangeKind;
  severity: Severity;
  table: string;
  field: string | null;
  before: ShapeName | null;
  after: ShapeName | null;
}

/** Records changes that were carried out; those of a deleted base are not stored. */
export async function recordSchemaChanges(db: Db, baseId: string, changes: ShapeChange[]): Promise<void> {
  if (changes.length === 0) return;
  const rows = changes.map((change) => ({ ...change, severity: severityOf(change) }));
  await db`
    with kept as (
      select id from bases where id = ${baseId} for key share
    )
    insert into schema_changes (base_id, kind, severity, table_name, field_name, before, after)
    select kept.id, c.kind, c.severity, c."table", c.field, c.before, c.after
    from kept, jsonb_to_recordset(${jsonParameter(rows)}::text::jsonb)
      as c (kind text, severity text, "table" text, field text, before jsonb, after jsonb)`;
}

/** Returns the latest changes, or those of one severity, the newest first. */
export async function listSchemaChanges(
  db: Db,
  baseId: string,
  limit: number,
  severity?: Severity,
): Promise<SchemaChange[]> {
  return db<SchemaChange[]>`
    select id, seen_at, kind, severity, table_name as table, field_name as field,
      nullif(before, 'null') as before, nullif(after, 'null') as after
    from schema_changes
    where base_id = ${baseId} and seen_at > now() - ${SCHEMA_CHANGES_KEPT}::interval
      ${severity === undefined ? db`` : db`and severity = ${severity}`}
    order by id desc limit ${limit}`;
}

/** Completes the schema check that was requested at `requestedAt`; a later request stays open. */
export async function completeSchemaCheck(db: Db, baseId: string, requestedAt: Date): Promise<void> {
  // A Date has no microseconds.
  await db`
    update bases set schema_check_requested_at = null
    where id = ${baseId} and date_trunc('milliseconds', schema_check_requested_at) <= ${requestedAt}`;
}
