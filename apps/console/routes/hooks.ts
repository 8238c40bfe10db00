/**
 * Receives notifications from sources. A notification only says that the feed has new changes; it carries no change,
 * and nothing else in it is trusted.
 *
 * Needs no session and no token: the signature is verified. A notification costs one look-up and one update, no matter
 * who sends it or how often.
 */
import { Elysia } from "elysia";
import type { ManagementContext } from "../../../core/control/bases";
import { recordNotification, webhookSecret } from "../../../core/control/feeds";
import { BasetideError } from "../../../core/errors";
import { platformFacts } from "../../../core/source";

/** A notification has about 120 bytes. */
const MAX_BODY_BYTES = 64 * 1024;
const MAX_ID_LENGTH = 100;

export function webhookRoutes(ctx: Pick<ManagementContext, "db" | "secrets">) {
  return new Elysia({ name: "hooks", detail: { hide: true } }).post(
    "/hooks/:platform/:id",
    async ({ request, params: { platform, id } }) => {
      const body = await readBody(request);
      const secret = id.length > MAX_ID_LENGTH ? undefined : await webhookSecret(ctx, id);
      // The same answer for an unknown base and for a wrong signature, so that the route does not reveal which bases
      // exist.
      const webhooks = platformFacts.find((facts) => facts.id === platform)?.webhooks;
      if (secret === undefined || !webhooks?.isSignedNotification(body, secret, request.headers)) {
        throw new BasetideError(
          "unauthorized",
          "The notification is not signed with the secret of this base's webhook",
        );
      }
      await recordNotification(ctx.db, id);
      return new Response(null, { status: 204 });
    },
    // The signature covers the raw bytes.
    { parse: "none" },
  );
}

/** Stops reading a body that is too large. @throws BasetideError `invalid_request` */
async function readBody(request: Request): Promise<Uint8Array> {
  const tooLarge = () =>
    new BasetideError("invalid_request", `A notification must have at most ${MAX_BODY_BYTES} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
