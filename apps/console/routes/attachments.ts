/**
 * Stable URLs of attachments: redirects to the URL at which the source has the attachment now.
 *
 * Needs no session and no token: the signature grants access to that one attachment. Forged, revoked and missing
 * attachments get the same answer, so that the route does not reveal which bases and records exist. It redirects only
 * to URLs that the source returned.
 */
import { Elysia } from "elysia";
import type { FreshUrls } from "../../../core/attachments";
import { linkedBases, type ManagementContext } from "../../../core/control/bases";
import { asBasetideError, BasetideError, httpStatus } from "../../../core/errors";
import { isId } from "../../../core/ids";
import { ATTACHMENTS_PATH, type AttachmentRef, isSignedBy } from "../../../core/replica";
import { securityHeaders } from "../../../views/render";

/**
 * When a client should try again after an error of the source, and after the source's penalty for too many requests, s.
 */
const RETRY_SECONDS = 10;
const RETRY_AFTER_PENALTY_SECONDS = 30;

/** A link may appear on any page, and its target does not learn the link. */
const LINK_HEADERS = {
  ...securityHeaders,
  "cross-origin-resource-policy": "cross-origin",
  "referrer-policy": "no-referrer",
  "x-robots-tag": "noindex",
};

export function attachmentRoutes(ctx: ManagementContext, urls: FreshUrls) {
  const find = linkedBases(ctx);

  async function redirect({ params, query }: { params: LinkParams; query: Record<string, unknown> }) {
    const place: AttachmentRef = params;
    const base = isId("base", params.baseId) ? await find(params.baseId) : null;
    const signature = typeof query.sig === "string" ? query.sig : "";
    if (!base || !isSignedBy(base.signer, place, signature)) throw notThere();
    const fresh = await urls.find(base, place).catch((error: unknown) => {
      throw forEverybody(error);
    });
    if (!fresh) throw notThere();
    return new Response(null, {
      status: 302,
      headers: {
        ...LINK_HEADERS,
        location: fresh.url,
        "cache-control": `private, max-age=${Math.floor(fresh.lastsMs / 1000)}`,
      },
    });
  }

  const path = `${ATTACHMENTS_PATH}/:baseId/:tableId/:recordId/:fieldId/:attachmentId` as const;
  return new Elysia({ name: "attachments", detail: { hide: true } }).get(path, redirect).head(path, redirect);
}

interface LinkParams extends AttachmentRef {
  baseId: string;
}

function notThere(): BasetideError {
  return new BasetideError("not_found", "The attachment does not exist, or its link has been revoked");
}

/**
 * Why the source fails (a rejected key, for example) is the owner's concern: a visitor with the link learns only that it
 * fails, and for how long.
 */
function forEverybody(caught: unknown): BasetideError {
  const error = asBasetideError(caught);
  if (error.code === "rate_limited" || error.code === "internal") return error;
  const code = httpStatus[error.code] >= 500 ? error.code : "source_unavailable";
  const retryAfterSeconds =
    error.code === "source_rate_limited" ? RETRY_AFTER_PENALTY_SECONDS : RETRY_SECONDS;
  const message = "Airtable cannot provide the attachment right now";
  return new BasetideError(code, message, { cause: error, details: { retryAfterSeconds } });
}
