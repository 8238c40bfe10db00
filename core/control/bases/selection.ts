/** Reads and changes what of a base is copied. */
import { conflict } from "../../errors";
import { jsonParameter } from "../../postgres";
import { newSecret } from "../../secrets";
import { isTableCopied, type SourceSchema, type SourceSelection } from "../../source";
import { type AuditDetails, recordChange } from "../audit";
import type { Base } from "./base-row";
import { askForSync, getBase, type ManagementContext, openApiKey } from "./bases";
import { checkChoice, readSelectableWith, type SelectableContext } from "./selectable";

/**
 * Returns what can be selected: the source's tables with all fields and views, by one call of the base's own key.
 *
 * @throws BasetideError `source_…`, `quota_timeout`, `secret_unreadable`
 */
export async function readSelectable(ctx: SelectableContext, base: Base): Promise<SourceSchema> {
  const { platform, sourceBaseId } = base;
  return readSelectableWith(ctx, { platform, sourceBaseId, apiKey: await openApiKey(ctx, base) }, "client");
}

/**
 * Changes what of the base is copied. The next sync rebuilds only tables that get fields or other cells, and drops the
 * others' columns, or the tables themselves, in place.
 *
 * @param schema what can be selected, as `readSelectable` has just returned it
 * @throws BasetideError `invalid_request` for a part that the source does not have or that cannot be treated so,
 *   `conflict` if the base is being deleted
 */
export async function setSelection(
  ctx: ManagementContext,
  base: Base,
  asked: SourceSelection,
  schema: SourceSchema,
): Promise<Base> {
  const { checked, selection, unanswered } = checkChoice(asked, schema, base.selection);
  await ctx.db.begin(async (tx) => {
    const [row] = await tx`
      update bases set selection = ${selection && jsonParameter(selection)}::text::jsonb,
        encrypted_hash_key = coalesce(encrypted_hash_key, ${selection && ctx.secrets.encrypt(newSecret(), `bases.hash_key:${base.id}`)}),
        unanswered_tables = ${jsonParameter(unanswered)}::text::jsonb,
        rests_until = null, schema_check_requested_at = now()
      where id = ${base.id} and state <> 'deleting' returning id`;
    if (!row) throw conflict("The base is being deleted");
    const { accountId, id } = base;
    const details = detailsOf(checked, schema);
    await recordChange(tx, ctx.actor, { accountId, action: "base.selection_changed", subject: id, details });
  });
  if (base.state !== "paused") await askForSync(ctx, base.id);
  return getBase(ctx.db, base.id);
}

/** Counts only: the names of what is left out are not stored. */
function detailsOf(selection: SourceSelection, { tables }: SourceSchema): AuditDetails {
  const copied = tables.filter(({ id }) => isTableCopied(selection, id));
  const treatments = copied.flatMap(({ id }) => Object.values(selection.tables[id]?.fields ?? {}));
  return {
    new_tables: selection.newTables,
    tables: copied.length,
    of_tables: tables.length,
    views: copied.filter(({ id }) => selection.tables[id]?.viewId !== undefined).length,
    omitted_fields: treatments.filter((treatment) => treatment === "omitted").length,
    hashed_fields: treatments.filter((treatment) => treatment === "hashed").length,
  };
}
