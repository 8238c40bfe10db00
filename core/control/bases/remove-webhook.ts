/**
 * Deletes a base's webhook at the source without a worker: when live mode is switched off, the base is deleted, or
 * its key is replaced.
 *
 * This is best effort, within seconds: a webhook that is left behind notifies an address that ignores it, and
 * expires after a week.
 */
import type { Context } from "../../context";
import { type ErrorCode, isBasetideError } from "../../errors";
import { MeteredSource, neverRetry, rateLimiterOf } from "../../limiter";
import { type ChangeFeed, type Platform, platformById } from "../../source";
import { quotaKeyOf } from "../budgets";
import { dropWebhook, forgetFeed, forgetRefusal, loadFeed } from "../feeds";
import type { Base } from "./base-row";

const REMOVAL_TIMEOUT_MS = 5000;
/** The source's answers to a key that may not see the webhooks. */
const KEY_REFUSALS = new Set<ErrorCode>(["source_forbidden", "source_key_refused", "source_not_found"]);

interface WebhookContext extends Pick<Context, "db" | "log" | "metrics"> {
  platforms: Platform[];
}

type BaseWithWebhook = Pick<Base, "id" | "platform" | "sourceBaseId">;

/** Deletes the webhook and the state of the feed. @param openKey returns the base's key */
export async function removeWebhook(
  ctx: WebhookContext,
  base: BaseWithWebhook,
  openKey: () => Promise<string>,
): Promise<void> {
  await asFarAsPossible(ctx, base, async () => {
    const feed = await loadFeed(ctx.db, base.id);
    if (feed?.webhookId) await deleteAtSource(ctx, base, feed.webhookId, await openKey());
  });
  await forgetFeed(ctx.db, base.id);
}

/**
 * Applies the replacement of `oldKey`: the webhook stays if the new key can see it. Otherwise it is deleted with
 * the old key, since no key could read it.
 */
export async function applyKey(
  ctx: WebhookContext,
  base: BaseWithWebhook,
  keys: { oldKey: string | undefined; newKey: string },
): Promise<void> {
  await forgetRefusal(ctx.db, base.id);
  await asFarAsPossible(ctx, base, async () => {
    const feed = await loadFeed(ctx.db, base.id);
    if (!feed?.webhookId || (await canSee(ctx, base, feed.webhookId, keys.newKey))) return;
    await dropWebhook(ctx.db, base.id);
    if (keys.oldKey !== undefined) await deleteAtSource(ctx, base, feed.webhookId, keys.oldKey);
  });
}

/**
 * @throws BasetideError for failures that say nothing about the key: the source is unavailable, the quota has no
 *   room
 */
async function canSee(
  ctx: WebhookContext,
  base: BaseWithWebhook,
  webhookId: string,
  key: string,
): Promise<boolean> {
  try {
    const webhooks = await call(ctx, base, key, (feed, signal) =>
      feed.listWebhooks(base.sourceBaseId, signal),
    );
    return webhooks?.some((webhook) => webhook.id === webhookId) ?? false;
  } catch (error) {
    if (isBasetideError(error) && KEY_REFUSALS.has(error.code)) return false;
    throw error;
  }
}

async function deleteAtSource(
  ctx: WebhookContext,
  base: BaseWithWebhook,
  webhookId: string,
  key: string,
): Promise<void> {
  await call(ctx, base, key, (feed, signal) => feed.deleteWebhook(base.sourceBaseId, webhookId, signal));
  ctx.log.info({ baseId: base.id, webhookId }, "webhook deleted");
}

/** Sends one request, once, when the base's quota has room for it. @returns undefined if the source has no feed */
async function call<T>(
  ctx: WebhookContext,
  base: BaseWithWebhook,
  key: string,
  make: (feed: ChangeFeed, signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const connection = platformById(ctx.platforms, base.platform).connect(key);
  if (!connection.changeFeed) return undefined;
  const signal = AbortSignal.timeout(REMOVAL_TIMEOUT_MS);
  const metered = new MeteredSource({
    connection,
    sourceBaseId: base.sourceBaseId,
    limiter: rateLimiterOf(ctx),
    quotaKey: quotaKeyOf(base),
    queue: { priority: "client", deadlineMs: REMOVAL_TIMEOUT_MS, signal, isOwnKey: true, shownAs: "console" },
    signal,
    retry: neverRetry,
  });
  return metered.send(({ changeFeed }) => make(changeFeed!, signal));
}

async function asFarAsPossible(
  ctx: WebhookContext,
  base: BaseWithWebhook,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    ctx.log.warn({ baseId: base.id, error }, "webhook could not be deleted; it expires by itself");
  }
}
