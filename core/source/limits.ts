/** The limits that a platform sets, as the rest of the service and its SQL functions are given them. */

export interface SourceLimits {
  /** Requests of a base are counted within this, ms. */
  windowMs: number;
  /** Requests of one base within a window, whoever's API key is used. */
  requestsPerWindow: number;
  /** The same while the platform has slowed the base, as it does beyond a monthly cap. */
  slowedPerWindow: number;
  /** Requests of one user within a window, over all bases. */
  userRequestsPerWindow: number;
  /** After a 429 the platform wants no request of the base for so long, ms. */
  penaltyMs: number;
  /** Records in one answer, and ids in one question, at most. */
  pageSize: number;
  /** A signed URL of an attachment works for at least so long after it was given, ms. */
  attachmentUrlMs: number;
}

/** A plan that the platform sells. A customer's own figures are the plan `custom` (core/control). */
export interface SourcePlan {
  id: string;
  /** For people. */
  name: string;
  /** Calls a month over all bases of a workspace; null: no cap. */
  callsPerMonth: number | null;
  /** What the platform does beyond the cap. */
  beyond: "blocked" | "slowed" | "unlimited";
}

export interface WebhookLimits {
  /** Webhooks of one base, of all programs together. */
  maxPerBase: number;
  /** A webhook ends so long after it was made, refreshed or read, ms. */
  lifetimeMs: number;
}

export interface WebhookFacts extends WebhookLimits {
  /**
   * Has the platform signed this notification?
   *
   * @param body as it was sent
   * @param secretBase64 given once, when the webhook was made
   */
  isSignedNotification(body: Uint8Array, secretBase64: string, headers: Headers): boolean;
  /** Codes of error payloads after which a webhook makes no more changes. */
  endingErrors: ReadonlySet<string>;
}
