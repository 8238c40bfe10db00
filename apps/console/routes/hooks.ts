/**
 * Receives notifications from sources. A notification only says that the feed has new changes; it carries no change,
 * and nothing else in it is trusted.
 *
 * Needs no session and no token: the signature is verified. A notification costs one update; the look-ups of secrets are
 * shared, so that forged ones cost no more the more arrive.
 */
import { Elysia } from "elysia";
import type { ManagementContext } from "../../../core/control/bases";
import { recordNotification, webhookSecrets } from "../../../core/control/feeds";
import { BasetideError } from "../../../core/errors";
import { isId } from "../../../core/ids";
import { platformFacts } from "../../../core/source";

/** A notification has about 120 bytes. */
const MAX_BODY_BYTES = 64 * 1024;

export function webhookRoutes(ctx: Pick<ManagementContext, "config" | "db" | "secrets">) {
  const secretOf = webhookSecrets(ctx);
  return new Elysia({ name: "hooks", detail: { hide: true } }).post(
    "/hooks/:platform/:id",
    async ({ request, params: { platform, id } }) => {
      const body = await readBody(request);
      // The same answer for an unknown base and for a wrong signature, so that the route does not reveal which bases
      // exist.
      const webhooks = platformFacts.find((facts) => facts.id === platform)?.webhooks;
      const secret = webhooks && isId("base", id) ? await secretOf(id) : undefined;
      if (secret === undefined || !webhooks?.isSignedNotification(body, secret, request.headers)) {
        throw new BasetideError(
          "unauthorized",
          "The notification is not signed with the secret of this base's webhook",
        );
      }
      await recordNotification(ctx.db, ctx.config.consoleUrl, id);
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
