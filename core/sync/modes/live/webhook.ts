/**
 * Keeps a base's webhook at the source alive: creates one, and replaces it when it is gone, disabled, has another
 * address or cannot be trusted any more.
 *
 * H1. A webhook that replaces another starts with a gap, stored in the same statement: changes in between are left to
 * a scan.
 */
import type { Config } from "../../../config";
import type { Context } from "../../../context";
import { asBasetideError, BasetideError, isBasetideError, nextStep } from "../../../errors";
import type { ChangeFeed, SourceClock, SourceConnection, SourceWebhook, WebhookFacts } from "../../../source";
import { metered, type Reader } from "../../engine";
import type { FeedStore, NewFeedWebhook, SavedFeed, SyncedBase } from "../../host";
import { type NotificationAddress, notificationAddress } from "./notification-address";

export interface BaseFeedContext {
  ctx: Pick<Context, "log"> & {
    config: Pick<Config, "consoleUrl" | "livePings" | "upstreams">;
    host: { readonly feeds: FeedStore };
  };
  base: Pick<SyncedBase, "id" | "platform" | "sourceBaseId">;
  /** The permission that the key needs, as the source calls it. */
  scope: string | undefined;
  webhooks: WebhookFacts;
  clock: SourceClock;
}

/** A webhook as its reader knows it. */
export type FeedWebhook = Pick<SavedFeed, "notificationUrl" | "expiresMs"> & { id: string };

/**
 * `refused`: the source does not allow the key to have one; recorded with the reason. `taken`: another process has replaced
 * it, or live mode is over. `gapSince` of a new webhook, which starts with number 1: it does not contain earlier changes.
 */
type WebhookRepair = "refused" | "taken" | { webhook: FeedWebhook; gapSince?: Date };

/**
 * Asks the source for the webhook's state, and repairs or replaces it if necessary.
 *
 * @param saved the base's feed as it was loaded, if there was one
 * @param isDead true to replace the webhook even if the source reports it as healthy
 * @throws BasetideError an error that may pass: the source or the control plane is unreachable, or the source does not
 *   find what it has; `source_key_refused`
 */
export async function repairWebhook(
  context: BaseFeedContext,
  reader: Reader,
  saved: Pick<SavedFeed, "webhookId"> | undefined,
  isDead: boolean,
): Promise<WebhookRepair> {
  const { ctx, base, scope } = context;
  // Without an earlier one, the list matters only if there is no room for another webhook.
  const first = saved === undefined && (await createFirst(context, reader));
  if (first) return first;
  const webhooks = await permitted(() =>
    call(reader, (feed, signal) => feed.listWebhooks(base.sourceBaseId, signal)),
  );
  if (!webhooks) {
    const lacking = scope === undefined ? "be allowed to manage webhooks" : `have the scope ${scope}`;
    return refuse(context, `The API key is not allowed to manage the base's webhooks. It must ${lacking}.`);
  }
  const address = await notificationAddress(ctx.config, base);
  const own = webhooks.find((webhook) => webhook.id === saved?.webhookId);
  if (own && !isDead && isUsable(own, address)) {
    await deleteAll(context, reader, leftoversOf(webhooks, own.id, address));
    return { webhook: await keepHealthy(context, reader, own) };
  }
  return replace(context, reader, webhooks, saved?.webhookId ?? null, address);
}

/**
 * Creates the base's first webhook with one call. One that a crash has left behind is deleted by a later check.
 *
 * @returns undefined if the source does not create it: its list of webhooks may say why, or has it all the same
 */
async function createFirst(context: BaseFeedContext, reader: Reader): Promise<WebhookRepair | undefined> {
  const { url } = await notificationAddress(context.ctx.config, context.base);
  try {
    return await store(context, reader, null, url, await create(context, reader, url));
  } catch (caught) {
    const { code } = asBasetideError(caught);
    if (!code.startsWith("source_") || code === "source_billing_limit") throw caught;
    return undefined;
  }
}

/** Extends the webhook's expiry in the second half of its lifetime. Makes no call in the usual case. */
export async function refreshInTime(
  { ctx, base, clock, webhooks }: BaseFeedContext,
  reader: Reader,
  webhook: FeedWebhook,
): Promise<FeedWebhook> {
  const now = clock.now() ?? Date.now();
  if (webhook.expiresMs === undefined || webhook.expiresMs - now > webhooks.lifetimeMs / 2) return webhook;
  const expiresMs = await call(reader, (feed, signal) =>
    feed.refreshWebhook(base.sourceBaseId, webhook.id, signal),
  );
  await ctx.host.feeds.recordHealthy(base.id, webhook.id, expiresMs);
  ctx.log.info({ webhookId: webhook.id, expiresMs }, "webhook refreshed");
  return { ...webhook, expiresMs };
}

/**
 * Returns, without a call, whether the webhook's notifications are meant for this console. A webhook that is polled
 * has no address.
 */
export function hasOwnAddress(
  { ctx }: BaseFeedContext,
  { notificationUrl }: Pick<SavedFeed, "notificationUrl">,
): boolean {
  if (notificationUrl === null) return true;
  return ctx.config.livePings !== "off" && notificationUrl.startsWith(`${ctx.config.consoleUrl}/`);
}

/** An address that cannot be determined is no reason to give up the current one. */
function isUsable(webhook: SourceWebhook, { url, isSure }: NotificationAddress): boolean {
  return webhook.isEnabled && (!isSure || (webhook.notificationUrl ?? null) === url);
}

async function keepHealthy(
  context: BaseFeedContext,
  reader: Reader,
  own: SourceWebhook,
): Promise<FeedWebhook> {
  const { ctx, base } = context;
  const { id, notificationUrl = null, expiresMs } = own;
  if (notificationUrl !== null && !own.areNotificationsEnabled) {
    await call(reader, (feed, signal) => feed.enableNotifications(base.sourceBaseId, id, true, signal));
    ctx.log.info({ webhookId: id }, "Airtable had disabled notifications; enabled again");
  }
  await ctx.host.feeds.recordHealthy(base.id, id, expiresMs);
  return refreshInTime(context, reader, { id, notificationUrl, expiresMs });
}

async function replace(
  context: BaseFeedContext,
  reader: Reader,
  webhooks: SourceWebhook[],
  replacedId: string | null,
  { url }: NotificationAddress,
): Promise<WebhookRepair> {
  const leftovers = leftoversOf(webhooks, null, { url });
  const ids = new Set(leftovers);
  // The list may have an entry for it that cannot be read.
  if (replacedId !== null) ids.add(replacedId);
  const mayReplace = await permitted(async () => {
    await deleteAll(context, reader, ids);
    return true;
  });
  const others = webhooks.filter(({ id }) => !ids.has(id)).length;
  const created = mayReplace && (await createAgain(context, reader, others, url));
  if (!created)
    return refuse(
      context,
      "The API key is not allowed to create webhooks. Its owner must have the creator role in the base.",
    );
  if ("reason" in created) return refuse(context, created.reason);
  return store(context, reader, replacedId, url, created);
}

/**
 * Returns the ids of webhooks with our address besides `ownId`: left behind by a crash, or from a row that was lost. Their
 * secrets are lost.
 */
function leftoversOf(
  webhooks: SourceWebhook[],
  ownId: string | null,
  { url }: Pick<NotificationAddress, "url">,
): string[] {
  return webhooks.flatMap(({ id, notificationUrl }) =>
    id !== ownId && url && notificationUrl === url ? id : [],
  );
}

async function deleteAll({ base }: BaseFeedContext, reader: Reader, ids: Iterable<string>): Promise<void> {
  for (const id of ids)
    await call(reader, (feed, signal) => feed.deleteWebhook(base.sourceBaseId, id, signal));
}

type CreatedWebhook = Awaited<ReturnType<ChangeFeed["createWebhook"]>>;

function create({ base }: BaseFeedContext, reader: Reader, url: string | null): Promise<CreatedWebhook> {
  return call(
    reader,
    (feed, signal) => feed.createWebhook(base.sourceBaseId, { notificationUrl: url ?? undefined }, signal),
    { isOnce: true },
  );
}

/** @returns null if the key is not allowed to; a reason if the source has no room */
async function createAgain(
  context: BaseFeedContext,
  reader: Reader,
  others: number,
  url: string | null,
): Promise<CreatedWebhook | { reason: string } | null> {
  try {
    return await permitted(() => create(context, reader, url));
  } catch (error) {
    if (!isBasetideError(error, "source_rejected")) throw error;
    if (others < context.webhooks.maxPerBase)
      return { reason: `Airtable refused to create a webhook. ${error.message}` };
    return {
      reason: `The base already has ${others} webhooks of other programs, the maximum. Delete one that is no longer needed.`,
    };
  }
}

async function store(
  context: BaseFeedContext,
  reader: Reader,
  replacedId: string | null,
  url: string | null,
  { id, secretBase64, expiresMs }: CreatedWebhook,
): Promise<WebhookRepair> {
  const saved = { id, secretBase64, notificationUrl: url, expiresMs };
  const gapSince = await saveOrDelete(context, reader, replacedId, saved);
  if (!gapSince) return "taken";
  context.ctx.log.info({ webhookId: id, replacedId, isNotifying: url !== null }, "webhook created");
  return { webhook: { id, notificationUrl: url, expiresMs }, gapSince };
}

/**
 * Stores a webhook; deletes it again, as far as possible, if it cannot be stored. @returns the gap that it starts with
 */
async function saveOrDelete(
  { ctx, base }: BaseFeedContext,
  reader: Reader,
  replacedId: string | null,
  webhook: NewFeedWebhook,
): Promise<Date | null> {
  const discard = () =>
    call(reader, (feed, signal) => feed.deleteWebhook(base.sourceBaseId, webhook.id, signal)).catch(
      (error: unknown) => {
        ctx.log.warn(
          { webhookId: webhook.id, error },
          "old webhook could not be deleted; it expires by itself",
        );
      },
    );
  try {
    const gapSince = await ctx.host.feeds.saveWebhook(base.id, replacedId, webhook);
    if (!gapSince) await discard();
    return gapSince;
  } catch (error) {
    await discard();
    throw error;
  }
}

async function refuse({ ctx, base }: BaseFeedContext, reason: string): Promise<WebhookRepair> {
  await ctx.host.feeds.recordRefused(base.id, reason);
  ctx.log.info({ reason }, "no feed available; the base is swept");
  return "refused";
}

/**
 * Sends one request within the base's quota, with the current key. A request that the source rejects is not retried,
 * unlike requests for records: it would be rejected again.
 *
 * @param options.isOnce true to also not retry after a transient failure: the request may have taken effect, and would
 *   be repeated
 */
export async function call<T>(
  reader: Reader,
  request: (feed: ChangeFeed, signal: AbortSignal) => Promise<T>,
  { kind = "webhooks", isOnce = false }: { kind?: "webhooks" | "payloads"; isOnce?: boolean } = {},
): Promise<T> {
  const answer = async ({ changeFeed }: SourceConnection, signal: AbortSignal) => {
    if (!changeFeed) throw new BasetideError("sync_stopped");
    try {
      const value = await request(changeFeed, signal);
      return () => value;
    } catch (caught) {
      const error = asBasetideError(caught);
      const isFinal = error.code === "source_rejected" || (isOnce && nextStep[error.code] === "retry");
      if (!isFinal) throw error;
      return () => {
        throw error;
      };
    }
  };
  return (await metered(reader, kind).send(answer))();
}

/**
 * Returns the source's answer, or null if the key lacks the permission.
 */
async function permitted<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (isBasetideError(error, "source_forbidden")) return null;
    throw error;
  }
}
