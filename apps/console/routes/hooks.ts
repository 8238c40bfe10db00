/**
 * Notifications of sources: "there is something new". A notification carries no change, so what it says is not believed beyond that.
 *
 * No session and no token: a notification is as good as its signature. It costs one look-up and one update, whoever sends it
 * and however often.
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
      // One answer for a base that is not there and for a wrong signature: nobody learns which bases there are.
      const webhooks = platformFacts.find((facts) => facts.id === platform)?.webhooks;
      if (secret === undefined || !webhooks?.isSignedNotification(body, secret, request.headers)) {
        throw new BasetideError("unauthorized", "The ping is not signed with this base's hook's secret");
      }
      await recordNotification(ctx.db, id);
      return new Response(null, { status: 204 });
    },
    // The signature is over the bytes.
    { parse: "none" },
  );
}

/** @throws BasetideError `invalid_request` for a body that is too large: no more of it is read */
async function readBody(request: Request): Promise<Uint8Array> {
  const tooLarge = () =>
    new BasetideError("invalid_request", `A ping has no more than ${MAX_BODY_BYTES} bytes`);
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
