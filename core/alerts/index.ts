/** Alerts to customers: what is worth telling, to whom, and bringing it there. */

export { tryWebhook } from "./deliver";
export { type EvaluateOptions, evaluate } from "./evaluate";
export {
  type AlertKind,
  alertKinds,
  isAlertKind,
  kindWords,
  usualKinds,
} from "./kinds";
export { listMessages, type MessageState, type SentMessage, toMessageJson, trimAlerts } from "./messages";
export { SIGNATURE_HEADER, signatureOf, type WebhookForm, webhookForms } from "./payload";
export { NotDelivered } from "./post";
export { listPreferences, type Preference, setPreferences } from "./preferences";
export { type AlertOptions, type RunningAlerts, startAlerts } from "./start";
export {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  type NewWebhook,
  toWebhookJson,
  updateWebhook,
  type Webhook,
  type WebhookChange,
} from "./webhooks";
