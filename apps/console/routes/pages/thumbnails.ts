/**
 * Thumbnails of attachments, as images of the console's own. Each costs the record's share of a call to the source, as
 * opening a link to an attachment does; a browser keeps it for as long as such a link would lead to the same place.
 */
import { fetchThumbnail, isThumbnailSize } from "../../../../core/attachments";
import type { CurrentUser } from "../../../../core/control/accounts";
import { type Base, sourceTables } from "../../../../core/control/bases";
import { BasetideError } from "../../../../core/errors";
import { factsOf } from "../../../../core/source";
import { securityHeaders } from "../../../../views/render";
import type { ConsoleContext } from "../../page-kit";
import { requireReadable } from "../../readable";

/** Opened as a page of its own, it may load and run nothing. */
const PICTURE_POLICY = "default-src 'none'; sandbox";

/** The route's address, by the source's ids. */
export const THUMBNAIL_ROUTE = "/bases/:id/thumbnails/:table/:record/:field/:attachment";

interface Asked {
  currentUser: CurrentUser;
  base: Base;
  params: { id: string; table: string; record: string; field: string; attachment: string };
  query: { size?: unknown };
}

/** @throws BasetideError `not_found` if there is no such picture; see `FreshUrls.find` and `fetchThumbnail` */
export async function answerThumbnail(
  ctx: ConsoleContext,
  { currentUser, base, params, query: { size } }: Asked,
): Promise<Response> {
  await requireReadable(ctx, currentUser, base);
  const { table: tableId, record: recordId, field: fieldId, attachment: attachmentId } = params;
  const known = (await sourceTables(ctx.db, base.id, [tableId])).get(tableId);
  const isField = known && Object.hasOwn(known.fields, fieldId);
  const isRecord = factsOf(base.platform).ids.mayBe("record", recordId);
  // Only what may exist is requested from the source.
  if (!isField || !isRecord || !isThumbnailSize(size)) throw notThere();
  const place = { tableId, recordId, fieldId, attachmentId };
  const fresh = await ctx.attachmentUrls.find(base, place, size);
  const thumbnail = fresh && (await fetchThumbnail(ctx, base.accountId, fresh.url));
  if (!thumbnail) throw notThere();
  return new Response(thumbnail.bytes, {
    headers: {
      ...securityHeaders,
      "content-security-policy": PICTURE_POLICY,
      "content-type": thumbnail.type,
      "content-disposition": "inline",
      "cache-control": `private, max-age=${Math.floor(fresh.lastsMs / 1000)}`,
    },
  });
}

function notThere(): BasetideError {
  return new BasetideError("not_found", "The attachment has no thumbnail");
}
