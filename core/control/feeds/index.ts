/** The stored state of the source's change feeds. */
export {
  closeFeedGap,
  dropWebhook,
  forgetFeed,
  forgetRefusal,
  hasNotifications,
  loadFeed,
  recordDrift,
  recordFailing,
  recordFeedGap,
  recordFeedGapOfBase,
  recordInSync,
  recordMissedNotification,
  recordNotification,
  recordRead,
  recordRefused,
  recordWebhookHealthy,
  saveCursor,
  saveWebhook,
  webhookSecrets,
} from "./live-feeds";
export { NotificationListener } from "./notifications";
