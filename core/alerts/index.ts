/** Alerts to customers: decides what to report and to which targets, and delivers it. */
export { tryWebhook } from "./deliver";
export { type FailingBase, failingBases, type UnhealthyBase, unhealthyBases } from "./failing";
export { type AlertKind, alertKindLabels, alertKinds, usualKinds } from "./kinds";
export { listMessages, type SentMessage } from "./messages";
export { NotDelivered } from "./post";
export { listPreferences, type Preference, setPreferences } from "./preferences";
export { startAlerts } from "./start";
export {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  updateWebhook,
  type Webhook,
} from "./webhooks";
