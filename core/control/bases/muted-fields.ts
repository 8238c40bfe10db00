/** The setting `muted_fields`: fields whose issues do not count. */
import type { Context } from "../../context";
import { invalid } from "../../errors";
import { loadCatalog, openReplica } from "../../replica";
import type { Base } from "./base-row";
import { replicaTarget } from "./bases";

/** The source's ids. */
export interface MutedField {
  tableId: string;
  fieldId: string;
}

/** A field as the API has it. */
export interface AskedField {
  table_id: string;
  field_id: string;
}

export const MOST_MUTED_FIELDS = 1000;

/**
 * Returns the setting for these fields. Those that are muted or have issues are not looked up: the database may be
 * unreachable, and a muted field may have been deleted since.
 *
 * @throws BasetideError `invalid_request` naming a field that does not exist, `replica_unavailable`
 */
export async function resolveMutedFields(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database" | "settings" | "issues">,
  asked: readonly AskedField[],
): Promise<MutedField[]> {
  const fields = asked.map(({ table_id, field_id }) => ({ tableId: table_id, fieldId: field_id }));
  const wanted = [...new Map(fields.map((field) => [keyOf(field), field])).values()];
  if (wanted.length > MOST_MUTED_FIELDS)
    throw invalid(`At most ${MOST_MUTED_FIELDS} fields can be muted. Unmute some`);
  const withIssues = base.issues.map(({ table_id, field_id }) => `${table_id} ${field_id}`);
  const known = new Set([...base.settings.mutedFields.map(keyOf), ...withIssues]);
  const unknown = wanted.filter((field) => !known.has(keyOf(field)));
  if (unknown.length > 0) await requireFields(ctx, base, unknown);
  return wanted;
}

async function requireFields(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
  fields: readonly MutedField[],
): Promise<void> {
  await using replica = openReplica(await replicaTarget(ctx, base));
  const catalog = await loadCatalog(replica);
  if (catalog.size === 0) throw invalid("There are no tables yet. Fields can be muted after the first sync");
  for (const { tableId, fieldId } of fields) {
    const spec = catalog.get(tableId)?.spec;
    if (!spec) throw invalid(`The base has no table ${tableId} in its database`);
    if (!spec.columns.some((column) => column.fieldId === fieldId))
      throw invalid(`Table ${spec.name} has no field ${fieldId} in its database`);
  }
}

function keyOf({ tableId, fieldId }: MutedField): string {
  return `${tableId} ${fieldId}`;
}
