/** Webhooks. */
export { webhookCall } from "./calls";
export { WebhookControl } from "./control";
export { Webhooks } from "./webhooks";
