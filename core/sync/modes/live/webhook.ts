/**
 * Keeps a base's hook at the source alive: makes one, and makes it anew when it is gone, disabled, of another address
 * or not to be trusted any more.
 *
 * H1. A hook that takes the place of another begins with a gap, noted with it: what changed in between is left to a
 *     sweep.
 */
import type { Config } from "../../../config";
import type { Context } from "../../../context";
import type { Base } from "../../../control/bases";
import {
  hookSecretContext,
  type KeptFeed,
  keepHook,
  noteHookWell,
  noteRefused,
} from "../../../control/feeds";
import { asBasetideError, BasetideError, isBasetideError, nextStep } from "../../../errors";
import type { ChangeFeed, SourceClock, SourceConnection, SourceHook, WebhookFacts } from "../../../source";
import { ask, type Reader } from "../../engine";
import { type PingAddress, pingAddress } from "./notification-address";

/** A webhook is refreshed when less than this part of its life is left. */
const REFRESH_BEFORE = 3 / 7;

export interface Keeping {
  ctx: Pick<Context, "db" | "secrets" | "log"> & {
    config: Pick<Config, "consoleUrl" | "livePings" | "upstreams">;
  };
  base: Pick<Base, "id" | "platform" | "sourceBaseId">;
  /** What the key must be allowed to, in the source's words. */
  scope: string | undefined;
  webhooks: WebhookFacts;
  clock: SourceClock;
}

/** A hook as its reader knows it. */
export type Hook = Pick<KeptFeed, "notificationUrl" | "expiresMs"> & { id: string };

export type Mended =
  /** It is the one that it was, and well. */
  | { is: "well"; hook: Hook }
  /** It begins with number 1; what was before `gapSince` is not in it. */
  | { is: "new"; hook: Hook; gapSince: Date }
  /** The source lets the key have none; noted, with the reason. */
  | { is: "refused" }
  /** Somebody else has put another in its place, or live mode is over. */
  | { is: "taken" };

/**
 * Asks the source how the hook is, and does what it needs.
 *
 * @param kept the base's feed as it was loaded, if there was one
 * @param isDead the hook is to be made anew even if the source says that it is well
 * @throws BasetideError what may pass: the source is away, or the control plane; `source_key_refused`
 */
export async function mendHook(
  keeping: Keeping,
  reader: Reader,
  kept: Pick<KeptFeed, "hookId"> | undefined,
  isDead: boolean,
): Promise<Mended> {
  const { ctx, base, scope } = keeping;
  const hooks = await permitted(() =>
    call(reader, (feed, signal) => feed.listWebhooks(base.sourceBaseId, signal)),
  );
  if (!hooks) {
    const lacking = scope === undefined ? "be allowed to manage webhooks" : `have the scope ${scope}`;
    return refuse(keeping, `The API key may not manage the base's webhooks: it must ${lacking}.`);
  }
  const address = await pingAddress(ctx.config, base);
  const own = hooks.find((hook) => hook.id === kept?.hookId);
  if (own && !isDead && isUsable(own, address))
    return { is: "well", hook: await keepWell(keeping, reader, own) };
  return replace(keeping, reader, hooks, kept?.hookId ?? null, address);
}

/** Puts off the hook's end if it is near. Without a call in the usual case. */
export async function refreshInTime(
  { ctx, base, clock, webhooks }: Keeping,
  reader: Reader,
  hook: Hook,
): Promise<Hook> {
  const now = clock.now() ?? Date.now();
  if (hook.expiresMs === undefined || hook.expiresMs - now > webhooks.lifetimeMs * REFRESH_BEFORE)
    return hook;
  const expiresMs = await call(reader, (feed, signal) =>
    feed.refreshWebhook(base.sourceBaseId, hook.id, signal),
  );
  await noteHookWell(ctx.db, base.id, hook.id, expiresMs);
  ctx.log.info({ hookId: hook.id, expiresMs }, "hook refreshed");
  return { ...hook, expiresMs };
}

/** Without a call: may the hook's pings be meant for this console? One that is polled has no address. */
export function hasOwnAddress(
  { ctx }: Keeping,
  { notificationUrl }: Pick<KeptFeed, "notificationUrl">,
): boolean {
  if (notificationUrl === null) return true;
  return ctx.config.livePings !== "off" && notificationUrl.startsWith(`${ctx.config.consoleUrl}/`);
}

/** Pings cannot be told from forged ones without the secret; a hook that is polled needs none. */
export function isReadable({ ctx, base }: Keeping, { notificationUrl, sealedSecret }: KeptFeed): boolean {
  if (notificationUrl === null || sealedSecret === null) return true;
  try {
    ctx.secrets.open(sealedSecret, hookSecretContext(base.id));
    return true;
  } catch {
    return false;
  }
}

/** An address that could not be found out is no reason to give up the one that there is. */
function isUsable(hook: SourceHook, { url, isSure }: PingAddress): boolean {
  return hook.isEnabled && (!isSure || (hook.notificationUrl ?? null) === url);
}

async function keepWell(keeping: Keeping, reader: Reader, own: SourceHook): Promise<Hook> {
  const { ctx, base } = keeping;
  const { id, notificationUrl = null, expiresMs } = own;
  if (notificationUrl !== null && !own.areNotificationsEnabled) {
    await call(reader, (feed, signal) => feed.enableNotifications(base.sourceBaseId, id, true, signal));
    ctx.log.info({ hookId: id }, "the source had given up pinging; switched on again");
  }
  await noteHookWell(ctx.db, base.id, id, expiresMs);
  return refreshInTime(keeping, reader, { id, notificationUrl, expiresMs });
}

async function replace(
  keeping: Keeping,
  reader: Reader,
  hooks: SourceHook[],
  replacedId: string | null,
  { url }: PingAddress,
): Promise<Mended> {
  const { ctx, base } = keeping;
  // Left behind by a crash, or of a row that was lost: their secrets are known to nobody.
  const leftovers = hooks.filter(
    ({ id, notificationUrl }) => id === replacedId || (url && notificationUrl === url),
  );
  const mayReplace = await permitted(async () => {
    for (const { id } of leftovers) {
      await call(reader, (feed, signal) => feed.deleteWebhook(base.sourceBaseId, id, signal));
    }
    return true;
  });
  const made = mayReplace && (await make(keeping, reader, hooks.length - leftovers.length, url));
  if (!made)
    return refuse(keeping, "The API key may not make webhooks: its owner must be a creator in the base.");
  if ("reason" in made) return refuse(keeping, made.reason);
  const { id, secretBase64, expiresMs } = made;
  const sealedSecret = ctx.secrets.seal(secretBase64, hookSecretContext(base.id));
  const kept = { id, sealedSecret, notificationUrl: url, expiresMs };
  const gapSince = await keepOrDelete(keeping, reader, replacedId, kept);
  if (!gapSince) return { is: "taken" };
  ctx.log.info({ hookId: id, replacedId, isPinging: url !== null }, "hook made");
  return { is: "new", hook: { id, notificationUrl: url, expiresMs }, gapSince };
}

/** @returns null where the key may not; a reason where the source has no room */
async function make(
  { base, webhooks }: Keeping,
  reader: Reader,
  others: number,
  url: string | null,
): Promise<Awaited<ReturnType<ChangeFeed["createWebhook"]>> | { reason: string } | null> {
  try {
    return await permitted(() =>
      call(
        reader,
        (feed, signal) =>
          feed.createWebhook(base.sourceBaseId, { notificationUrl: url ?? undefined }, signal),
        { isOnce: true },
      ),
    );
  } catch (error) {
    if (!isBasetideError(error, "source_rejected")) throw error;
    if (others < webhooks.maxPerBase)
      return { reason: `The source refuses to make a webhook. ${error.message}` };
    return {
      reason: `The base has ${others} webhooks of other programs, as many as the source allows. Delete one that nobody needs.`,
    };
  }
}

/** A hook that cannot be noted is taken away again, as far as possible. @returns the gap that it begins with */
async function keepOrDelete(
  { ctx, base }: Keeping,
  reader: Reader,
  replacedId: string | null,
  hook: Parameters<typeof keepHook>[3],
): Promise<Date | null> {
  const discard = () =>
    call(reader, (feed, signal) => feed.deleteWebhook(base.sourceBaseId, hook.id, signal)).catch(
      (error: unknown) => {
        ctx.log.warn({ hookId: hook.id, error }, "hook left behind; it ends by itself");
      },
    );
  try {
    const gapSince = await keepHook(ctx.db, base.id, replacedId, hook);
    if (!gapSince) await discard();
    return gapSince;
  } catch (error) {
    await discard();
    throw error;
  }
}

async function refuse({ ctx, base }: Keeping, reason: string): Promise<Mended> {
  await noteRefused(ctx.db, base.id, reason);
  ctx.log.info({ reason }, "no feed of changes; the base is swept");
  return { is: "refused" };
}

/**
 * One request of the base's quota, by whatever key it has. What the source rejects it rejects again: that is not tried
 * a second time, as it is with records.
 *
 * @param options.isOnce nor is what failed in passing: it may have been done, and would be done twice
 */
export async function call<T>(
  reader: Reader,
  make: (feed: ChangeFeed, signal: AbortSignal) => Promise<T>,
  { kind = "hooks", isOnce = false }: { kind?: "hooks" | "payloads"; isOnce?: boolean } = {},
): Promise<T> {
  const answer = async (signal: AbortSignal, { changeFeed }: SourceConnection) => {
    if (!changeFeed) throw new BasetideError("sync_stopped");
    try {
      const value = await make(changeFeed, signal);
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
  return (await ask(reader, answer, kind))();
}

/** What the source answers, or null where the key may not. "Not found" of the hooks of a base says the same. */
async function permitted<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (isBasetideError(error, "source_forbidden") || isBasetideError(error, "source_not_found")) return null;
    throw error;
  }
}
