/** Live mode. */

export { TRIM_INTERVAL_MS } from "./background";
export { compareTable } from "./drift";
export { type FeedContext, LiveFeed, openFeed } from "./feed";
export { type LiveInput, liveBase } from "./live";
export { notificationAddress } from "./notification-address";
export { restUntilDue } from "./rest";
