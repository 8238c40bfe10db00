/** Bodies for webhooks, our JSON or text that Slack and compatible services accept, and their signature. */
import { createHmac } from "node:crypto";
import { cutText } from "../cut-text";
import { alertText, lateNotice, textOf } from "./format";
import type { Alert } from "./kinds";

export const webhookForms = ["json", "slack"] as const;
export type WebhookForm = (typeof webhookForms)[number];

export const SIGNATURE_HEADER = "X-Basetide-Signature";
export const DELIVERY_HEADER = "X-Basetide-Delivery";

/** Slack accepts 40,000 characters, compatible services half of that. */
const MAX_SLACK_LENGTH = 12_000;

export interface Message {
  id: string;
  at: Date;
  alerts: Alert[];
}

/** Returns the body for a webhook of this form, sent at `now`. */
export function bodyOf(
  form: WebhookForm,
  { id, at, alerts }: Message,
  consoleUrl: string,
  now: Date,
): string {
  const text = lateNotice(at, now) + textOf(alerts, consoleUrl);
  return form === "slack"
    ? slackBody(text)
    : JSON.stringify({
        id,
        created_at: at.toISOString(),
        test: false,
        text,
        alerts: alerts.map((alert) => toAlertJson(alert, consoleUrl)),
      });
}

/** Returns the body of a test delivery, which reports no alert. */
export function testBody(form: WebhookForm, id: string, at: Date, name: string): string {
  const text = `Test of the Basetide webhook “${name}”: alerts will arrive here.`;
  if (form === "slack") return slackBody(text);
  return JSON.stringify({ id, created_at: at.toISOString(), test: true, text, alerts: [] });
}

/** Returns `t=1795300000,v1=…`: HMAC-SHA256, in hex, with the webhook's secret over the time, a dot, and the body. */
export function signatureOf(secret: string, body: string, at: Date): string {
  const time = Math.floor(at.getTime() / 1000);
  return `t=${time},v1=${createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")}`;
}

/**
 * Slack interprets `<…>` as links and as mentions of everyone, and marks unless told otherwise; compatible services read
 * Markdown, and mention everyone by `@all` or `@channel`: links and mentions are broken by a character without width.
 */
function slackBody(text: string): string {
  const short = text.length <= MAX_SLACK_LENGTH ? text : `${cutText(text, MAX_SLACK_LENGTH - 1)}…`;
  const escaped = short
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replace(/\](?=[([])|@(?=\w)/g, "$&\u2060");
  return JSON.stringify({ text: escaped, mrkdwn: false });
}

function toAlertJson(alert: Alert, consoleUrl: string) {
  const { kind, at, baseId, workspaceId, facts } = alert;
  const { title, detail, advice, url } = alertText(alert, consoleUrl);
  return {
    kind,
    at: at.toISOString(),
    since: facts.since,
    times: facts.times,
    base_id: baseId,
    workspace_id: workspaceId,
    name: facts.name,
    code: facts.code ?? null,
    reason: facts.reason,
    changes: facts.changes ?? null,
    title,
    detail,
    advice,
    url,
  };
}
