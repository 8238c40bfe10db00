/** What is stored of a base's feed of changes, for `LiveFeed`. */

/**
 * Whether the source's notifications arrive at the address of this installation. `proven`: one has arrived, for any base.
 * `expected`: there is an address, and no change has been found without one. `none`: otherwise; changes must be polled for.
 */
export type NotificationState = "proven" | "expected" | "none";

export interface SavedFeed {
  state: "making" | "on" | "refused" | "failing";
  /** Refused, and not to be retried yet. */
  isResting: boolean;
  webhookId: string | null;
  /** Whether the webhook's secret can be decrypted: without it, notifications cannot be distinguished from forged ones. */
  isSecretReadable: boolean;
  /** Of the webhook: changes before it are durable in the replica. */
  cursor: number;
  notificationUrl: string | null;
  /** On the source's clock, ms since 1970. */
  expiresMs: number | undefined;
  /** By the server's clock; `gapMsAgo` is its age and depends on no clock. */
  gapSince: Date | null;
  gapMsAgo: number | null;
  /** Whether a change was found without a notification, and no notification has arrived since. */
  hasMissedNotification: boolean;
  /** Whether a notification arrived since the feed was last read. */
  isNotified: boolean;
  /** Time since the source was asked for the webhook's state; Infinity: never. */
  checkedMsAgo: number;
}

export interface NewFeedWebhook {
  id: string;
  secretBase64: string;
  notificationUrl: string | null;
  expiresMs: number | undefined;
}

export interface ReadFacts {
  /** Time since the last successful read began, ms. */
  readMsAgo: number;
  /** Time until it must be read again, ms. */
  dueInMs: number;
  waiting: number;
  changedAt: Date | null;
  /** Records that only a sweep found changed, since the last such record. */
  missed: number;
}

/** Changes of it, each by the base's id. */
export interface FeedStore {
  /** Returns what all bases of the installation know of its address; the latest state that this process has heard of. */
  addressState(): NotificationState;
  load(baseId: string): Promise<SavedFeed | undefined>;
  /**
   * Replaces the webhook `replaced` by a new one, which is read from its beginning.
   *
   * @returns the gap that it begins with; null, without a change, if the base no longer uses live mode or has another
   *   webhook by now
   */
  saveWebhook(baseId: string, replaced: string | null, webhook: NewFeedWebhook): Promise<Date | null>;
  recordHealthy(baseId: string, webhookId: string, expiresMs: number | undefined): Promise<void>;
  recordRefused(baseId: string, reason: string): Promise<void>;
  recordFailing(baseId: string, reason: string, retryInMs: number): Promise<void>;
  /** @returns the time of the gap; null if the base has another webhook by now */
  recordGap(baseId: string, webhookId: string): Promise<Date | null>;
  /** @returns the time of the gap */
  recordDrift(baseId: string): Promise<Date | null>;
  closeGap(baseId: string, gapSince: Date | null): Promise<void>;
  saveCursor(baseId: string, webhookId: string, cursor: number): Promise<void>;
  recordRead(baseId: string, facts: ReadFacts): Promise<void>;
  /** Records that a change was found without a notification. If none has ever arrived for any base, all are polled. */
  recordMissedNotification(baseId: string): Promise<void>;
  recordInSync(baseId: string): Promise<void>;
}
