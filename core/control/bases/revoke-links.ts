/** Ends the attachment links of a base. */
import { conflict } from "../../errors";
import { recordChange } from "../audit";
import { newAttachmentKey } from "./attachment-keys";
import type { Base } from "./base-row";
import { askForSync, getBase, type ManagementContext } from "./bases";

/**
 * Ends every existing attachment link at once, by replacing the key. A requested sync rewrites the rows with such
 * links.
 *
 * @throws BasetideError `conflict` if the base has no links, or is being deleted
 */
export async function revokeAttachmentLinks(ctx: ManagementContext, base: Base): Promise<Base> {
  await ctx.db.begin(async (tx) => {
    const [revoked] = await tx`
      update bases set encrypted_attachment_key = ${newAttachmentKey(ctx, base.id)},
        attachment_key_version = attachment_key_version + 1, rests_until = null, schema_check_requested_at = now()
      where id = ${base.id} and encrypted_attachment_key is not null and state <> 'deleting' returning id`;
    if (!revoked) {
      throw conflict("The base has never had attachment links, or is being deleted");
    }
    const { accountId, id } = base;
    await recordChange(tx, ctx.actor, { accountId, action: "base.attachment_links_revoked", subject: id });
  });
  await askForSync(ctx, base.id);
  return getBase(ctx.db, base.id);
}
