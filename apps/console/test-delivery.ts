/**
 * Sends test deliveries to webhooks, for the console and the API. Limited to a few a minute, as each one calls another
 * server.
 */
import { NotDelivered, tryWebhook, type Webhook } from "../../core/alerts";
import type { ManagementContext } from "../../core/control/bases";
import { refuse } from "./api-limit";

const MOST_TEST_DELIVERIES = 10;
const WINDOW = "1 minute";

/** @returns why the delivery failed, or null. @throws BasetideError `rate_limited` */
export async function testDelivery(
  ctx: Pick<ManagementContext, "db" | "config" | "secrets">,
  webhook: Webhook,
): Promise<string | null> {
  const [row] = await ctx.db<{ waitMs: number }[]>`
    select attempt(${`webhook-trial:${webhook.accountId}`}, ${MOST_TEST_DELIVERIES}, ${WINDOW}::interval) as "waitMs"`;
  refuse(row!.waitMs, "tests");
  try {
    await tryWebhook(ctx, webhook);
    return null;
  } catch (error) {
    if (error instanceof NotDelivered) return error.message;
    throw error;
  }
}
