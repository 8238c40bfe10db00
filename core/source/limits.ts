/** The limits of a platform, in the form that the rest of the service and its SQL functions use. */

export interface SourceLimits {
  /** Length of the window in which requests of a base are counted, ms. */
  windowMs: number;
  /** Requests of one base within a window, for all API keys together. */
  requestsPerWindow: number;
  /** The same while the platform slows the base down, as it does beyond a monthly cap. */
  slowedPerWindow: number;
  /** Requests of one user within a window, over all bases. */
  userRequestsPerWindow: number;
  /** After a 429 the platform expects no request of the base for this long, ms. */
  penaltyMs: number;
  /** Maximum number of records in one answer, and of ids in one request. */
  pageSize: number;
  /** Maximum number of records that one request writes. */
  writeSize: number;
  /** A signed URL of an attachment works for at least this long after it was issued, ms. */
  attachmentUrlMs: number;
}

/** A plan that the platform sells. A customer's own figures are the plan `custom` (core/control). */
export interface SourcePlan {
  id: string;
  /** Display name. */
  name: string;
  /** Calls a month over all bases of a workspace; null: no cap. */
  callsPerMonth: number | null;
  /** What the platform does beyond the cap. */
  beyond: "blocked" | "slowed" | "unlimited";
}

export interface WebhookLimits {
  /** Webhooks of one base, of all programs together. */
  maxPerBase: number;
  /** A webhook expires this long after it was created, refreshed or read, ms. */
  lifetimeMs: number;
}

export interface WebhookFacts extends WebhookLimits {
  /**
   * Has the platform signed this notification?
   * @param body unmodified
   * @param secretBase64 returned only once, when the webhook was created
   */
  isSignedNotification(body: Uint8Array, secretBase64: string, headers: Headers): boolean;
  /** Codes of error payloads after which a webhook records no more changes. */
  endingErrors: ReadonlySet<string>;
}
