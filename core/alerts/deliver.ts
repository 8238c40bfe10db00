/**
 * Delivers one message to its target. Addresses and secrets are decrypted here only.
 *
 * A7. A message that has arrived is recorded as sent while its process holds it, and no other attempt sends it. It is sent
 * again only if its arrival is unknown, and then under the same id, so that a receiver can recognize it.
 */
import type { Counter } from "prom-client";
import { version } from "../../package.json" with { type: "json" };
import type { Context } from "../context";
import { isBasetideError } from "../errors";
import { newId } from "../ids";
import type { Mail, SendMail } from "../mail";
import type { MailPermits } from "../mail-permits";
import { lateNotice, subjectOf, textOf } from "./format";
import type { Alert } from "./kinds";
import { alertsOf, endMessage, type Retries, recordFailure, type TakenMessage } from "./messages";
import { bodyOf, DELIVERY_HEADER, SIGNATURE_HEADER, signatureOf, testBody } from "./payload";
import { NotDelivered, post } from "./post";
import { getWebhook, openWebhook, recordOutcome, type Webhook } from "./webhooks";

export interface DeliveryContext extends Pick<Context, "db" | "config" | "secrets" | "log"> {
  /** Null without a mail server. */
  sendMail: SendMail | null;
  mailPermits: MailPermits;
  retries: Retries;
  counts: Counter<"kind" | "channel" | "outcome">;
}

type Channel = "mail" | "webhook" | "slack";
type Outcome = "sent" | "failed" | "given_up" | "dropped";

/** Delivers a message that this process has taken. A failure is recorded with the message, which is retried. */
export async function deliver(ctx: DeliveryContext, message: TakenMessage): Promise<void> {
  const { db, log, retries } = ctx;
  const { id, alerts, webhookId, form } = message;
  const channel = form === null ? "mail" : form === "slack" ? "slack" : "webhook";
  try {
    // An attempt that ended with its process counts, too.
    if (message.attempts > retries.limit + 1) throw new NotDelivered("The processes that sent it have ended");
    const send = alerts.length === 0 ? null : await senderOf(ctx, message);
    await send?.();
    await endMessage(db, id, send ? "sent" : "dropped");
    if (send && webhookId) await recordOutcome(db, webhookId, null);
    count(ctx, alerts, channel, send ? "sent" : "dropped");
  } catch (error) {
    const words = error instanceof NotDelivered ? error.message : "It could not be sent";
    if (!(error instanceof NotDelivered)) log.warn({ error, messageId: id }, "alert delivery failed");
    const abandoned = await recordFailure(db, message, words, retries);
    if (webhookId) await recordOutcome(db, webhookId, words);
    count(ctx, alerts, channel, "failed");
    for (const messageId of abandoned) {
      log.warn({ messageId }, "alert delivery abandoned");
      count(ctx, await alertsOf(db, messageId), channel, "given_up");
    }
  }
}

/** Sends a test delivery now, once. @throws NotDelivered with the reason */
export async function tryWebhook(
  ctx: Pick<Context, "db" | "config" | "secrets">,
  webhook: Pick<Webhook, "id" | "form" | "name">,
): Promise<void> {
  const id = newId("alert_message");
  try {
    await postTo(ctx, webhook, id, testBody(webhook.form, id, new Date(), webhook.name));
  } catch (error) {
    if (error instanceof NotDelivered) await recordOutcome(ctx.db, webhook.id, error.message);
    throw error;
  }
  await recordOutcome(ctx.db, webhook.id, null);
}

/** Returns what sends the message; null if nothing more must be sent to its target. */
async function senderOf(ctx: DeliveryContext, message: TakenMessage): Promise<(() => Promise<void>) | null> {
  const { db, config, sendMail } = ctx;
  if (message.webhookId !== null) {
    const webhook = await getWebhook(db, message.webhookId, message.accountId);
    const body = bodyOf(webhook.form, message, config.consoleUrl, new Date());
    return webhook.isOn ? () => postTo(ctx, webhook, message.id, body) : null;
  }
  const [to] = await db<{ email: string; account: string }[]>`
    select u.email, a.email as account from users as u, accounts as a
    where u.id = ${message.userId} and a.id = ${message.accountId} and u.email_verified`;
  if (!to || !sendMail) return null;
  const mail = mailOf(message, to, config.consoleUrl);
  return () => sendByMail(ctx, sendMail, message.accountId, mail);
}

async function postTo(
  ctx: Pick<Context, "db" | "config" | "secrets">,
  { id, form }: Pick<Webhook, "id" | "form">,
  messageId: string,
  body: string,
): Promise<void> {
  const { url, secret } = await openWebhook(ctx, id);
  const headers = {
    "user-agent": `Basetide/${version}`,
    [DELIVERY_HEADER]: messageId,
    [SIGNATURE_HEADER]: signatureOf(secret, body, new Date()),
    accept: form === "slack" ? "*/*" : "application/json, */*",
  };
  await post({ url, body, headers }, ctx.config.privateDestinations);
}

async function sendByMail(
  { mailPermits }: Pick<DeliveryContext, "mailPermits">,
  send: SendMail,
  accountId: string,
  mail: Mail,
): Promise<void> {
  const permit = await mailPermits
    .take({ reason: "alert", to: mail.to, accountId })
    .catch((error: unknown) => {
      if (isBasetideError(error)) throw new NotDelivered("Too many mails to this address or account");
      throw error;
    });
  try {
    await send(mail, permit);
  } catch (error) {
    const code = error instanceof Error && "responseCode" in error ? error.responseCode : undefined;
    throw new NotDelivered(
      typeof code === "number" ? `The mail server answered ${code}` : "The mail server cannot be reached",
    );
  }
}

function mailOf(
  { id, at, alerts }: TakenMessage,
  { email, account }: { email: string; account: string },
  consoleUrl: string,
): Mail {
  const settings = `${consoleUrl}/account/alerts`;
  return {
    to: email,
    subject: subjectOf(alerts),
    text: [
      lateNotice(at, new Date()) + textOf(alerts, consoleUrl),
      `You get this as a member of the account ${account}. Choose which alerts you get, or turn them off: ${settings}`,
      "Basetide",
    ].join("\n\n"),
    messageId: `<${id}@${new URL(consoleUrl).hostname}>`,
    headers: { "List-Unsubscribe": `<${settings}>`, "Auto-Submitted": "auto-generated" },
  };
}

function count({ counts }: DeliveryContext, alerts: Alert[], channel: Channel, outcome: Outcome): void {
  for (const { kind } of alerts) counts.inc({ kind, channel, outcome });
}
