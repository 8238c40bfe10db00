/** Live mode. */
export { type FeedContext, LiveFeed, openFeed } from "./feed";
export { compareFreshness } from "./freshness";
export { type Live, type LiveInput, liveBase } from "./live";
export { PingWatch } from "./notifications";
