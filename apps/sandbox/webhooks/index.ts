/** Webhooks. */
export { webhookCall } from "./calls";
export { WebhookControl } from "./control";
export { defaultWebhookSettings, mergeWebhookSettings, type WebhookSettings } from "./settings";
export { Webhooks } from "./webhooks";
