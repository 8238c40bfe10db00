/**
 * The account's webhooks: targets of alerts besides members' e-mail.
 *
 * The URL and the secret that signs messages are both encrypted. The secret is shown once, when it is created.
 */
import type { Context, Db } from "../context";
import { recordChange } from "../control/audit";
import { conflict, invalid, notFound } from "../errors";
import { newId, rowById } from "../ids";
import { checkedName } from "../postgres";
import { newSecret } from "../secrets";
import { type AlertKind, inOrder, usualKinds } from "./kinds";
import type { WebhookForm } from "./payload";
import { checkReceiver, NotDelivered } from "./post";

/** Per account: more is a mistake. */
const MAX_WEBHOOKS = 10;

export interface Webhook {
  id: string;
  accountId: string;
  name: string;
  form: WebhookForm;
  /** Only the host is shown; the rest of the URL is secret. */
  host: string;
  kinds: AlertKind[];
  isOn: boolean;
  createdAt: Date;
  deliveredAt: Date | null;
  failingSince: Date | null;
  error: string | null;
}

interface NewWebhook {
  /** Defaults to the host. */
  name?: string | undefined;
  url: string;
  form: WebhookForm;
  /** Defaults to the kinds that members get by default. */
  kinds?: AlertKind[] | undefined;
}

type WebhookChange = Partial<NewWebhook & Pick<Webhook, "isOn">>;

type ChangeContext = Pick<Context, "db" | "config" | "secrets" | "actor">;

/** In order of creation. */
export async function listWebhooks(db: Db, accountId: string): Promise<Webhook[]> {
  return selectWebhooks(db, db`account_id = ${accountId}`);
}

/** @throws BasetideError `not_found`, also if it belongs to another account */
export async function getWebhook(db: Db, id: string, accountId: string): Promise<Webhook> {
  const find = () => selectWebhooks(db, db`id = ${id} and account_id = ${accountId}`);
  return rowById("alert_webhook", id, find, `There is no webhook ${id}`);
}

/**
 * @returns the webhook and its secret, which cannot be read again later
 * @throws BasetideError `invalid_request` for a URL that cannot be used, `conflict` if there are too many
 */
export async function createWebhook(
  ctx: ChangeContext,
  accountId: string,
  webhook: NewWebhook,
): Promise<{ webhook: Webhook; secret: string }> {
  const url = await checkUrl(webhook.url, ctx.config);
  const name = checkedName(webhook.name || url.hostname, "A webhook");
  const id = newId("alert_webhook");
  const secret = `whsec_${newSecret()}`;
  const kinds = inOrder(webhook.kinds ?? usualKinds);
  await ctx.db.begin(async (tx) => {
    await tx`select from accounts where id = ${accountId} for no key update`;
    const [count] = await tx<{ count: number }[]>`
      select count(*)::int as count from alert_webhooks where account_id = ${accountId}`;
    if (count!.count >= MAX_WEBHOOKS) {
      throw conflict(`An account has at most ${MAX_WEBHOOKS} webhooks: delete one first`);
    }
    await tx`
      insert into alert_webhooks (id, account_id, name, form, host, encrypted_url, encrypted_secret, kinds)
      values (${id}, ${accountId}, ${name}, ${webhook.form}, ${url.hostname},
        ${ctx.secrets.encrypt(url.href, `alert_webhooks.url:${id}`)}, ${ctx.secrets.encrypt(secret, `alert_webhooks.secret:${id}`)}, ${kinds})`;
    const details = { name, host: url.hostname, kinds: kinds.join(" ") };
    await recordChange(tx, ctx.actor, { accountId, action: "alert_webhook.created", subject: id, details });
  });
  return { webhook: await getWebhook(ctx.db, id, accountId), secret };
}

/** Changes the given settings. @throws BasetideError `invalid_request`, `not_found` if it was deleted */
export async function updateWebhook(
  ctx: ChangeContext,
  webhook: Webhook,
  change: WebhookChange,
): Promise<Webhook> {
  const { id, accountId } = webhook;
  const url = change.url === undefined ? undefined : await checkUrl(change.url, ctx.config);
  const name = checkedName(change.name ?? webhook.name, "A webhook");
  const form = change.form ?? webhook.form;
  const isOn = change.isOn ?? webhook.isOn;
  const kinds = inOrder(change.kinds ?? webhook.kinds);
  const host = url?.hostname ?? webhook.host;
  await ctx.db.begin(async (tx) => {
    const { count } = await tx`
      update alert_webhooks set name = ${name}, form = ${form}, kinds = ${kinds}, is_on = ${isOn}, host = ${host},
        encrypted_url = coalesce(${url ? ctx.secrets.encrypt(url.href, `alert_webhooks.url:${id}`) : null}, encrypted_url)
      where id = ${id} and account_id = ${accountId}`;
    if (count === 0) throw notFound(`There is no webhook ${id}`);
    const details = { name, host, form, kinds: kinds.join(" "), on: isOn };
    await recordChange(tx, ctx.actor, { accountId, action: "alert_webhook.changed", subject: id, details });
  });
  return getWebhook(ctx.db, id, accountId);
}

/** Deletes the webhook and its waiting messages. @throws BasetideError `not_found` */
export async function deleteWebhook(
  ctx: Pick<Context, "db" | "actor">,
  { id, accountId, name }: Pick<Webhook, "id" | "accountId" | "name">,
): Promise<void> {
  await ctx.db.begin(async (tx) => {
    const { count } = await tx`delete from alert_webhooks where id = ${id} and account_id = ${accountId}`;
    if (count === 0) throw notFound(`There is no webhook ${id}`);
    const change = { accountId, subject: id, details: { name } };
    await recordChange(tx, ctx.actor, { ...change, action: "alert_webhook.deleted" });
  });
}

/** Returns its URL and its secret, decrypted. @throws BasetideError `not_found`, `secret_unreadable` */
export async function openWebhook(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  id: string,
): Promise<{ url: string; secret: string }> {
  const [row] = await db<{ encrypted_url: string; encrypted_secret: string }[]>`
    select encrypted_url, encrypted_secret from alert_webhooks where id = ${id}`;
  if (!row) throw notFound(`There is no webhook ${id}`);
  return {
    url: secrets.decrypt(row.encrypted_url, `alert_webhooks.url:${id}`),
    secret: secrets.decrypt(row.encrypted_secret, `alert_webhooks.secret:${id}`),
  };
}

/** Records the outcome of the last message. @param error why it was not delivered; null if it was */
export async function recordOutcome(db: Db, id: string, error: string | null): Promise<void> {
  await db`
    update alert_webhooks set error = ${error},
      delivered_at = case when ${error}::text is null then now() else delivered_at end,
      failing_since = case when ${error}::text is not null then coalesce(failing_since, now()) end
    where id = ${id}`;
}

/** Checks that the URL is allowed now; every delivery checks it again. */
async function checkUrl(
  text: string,
  { isProduction, privateDestinations }: Pick<Context["config"], "isProduction" | "privateDestinations">,
): Promise<URL> {
  const url = URL.parse(text.trim());
  const schemes = isProduction ? ["https:"] : ["https:", "http:"];
  if (!url || !schemes.includes(url.protocol)) {
    throw invalid("A webhook's address must be a URL that begins with https://");
  }
  if (url.username || url.password) throw invalid("A webhook's address must not contain a user or password");
  url.hash = "";
  try {
    await checkReceiver(url.hostname.replace(/^\[(.*)\]$/, "$1"), privateDestinations);
  } catch (error) {
    if (error instanceof NotDelivered) throw invalid(error.message);
    throw error;
  }
  return url;
}

async function selectWebhooks(db: Db, where: ReturnType<Db>): Promise<Webhook[]> {
  return db<Webhook[]>`
    select id, account_id as "accountId", name, form, host, kinds, is_on as "isOn", created_at as "createdAt",
      delivered_at as "deliveredAt", failing_since as "failingSince", error
    from alert_webhooks where ${where} order by created_at, id`;
}
