/** Alerts to customers: decides what to report and to which targets, and delivers it. */
export { tryWebhook } from "./deliver";
export { type FailingBase, failingBases, type UnhealthyBase, unhealthyBases } from "./failing";
export { type AlertKind, alertKindLabels, alertKinds, usualKinds } from "./kinds";
export { listMessages, type SentMessage, toMessageJson } from "./messages";
export { webhookForms } from "./payload";
export { NotDelivered } from "./post";
export { listPreferences, type Preference, setPreferences } from "./preferences";
export { startAlerts } from "./start";
export {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  toWebhookJson,
  updateWebhook,
  type Webhook,
} from "./webhooks";
