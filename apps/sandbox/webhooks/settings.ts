/**
 * The settings of webhooks in a running sandbox. Times are ms.
 */
import { ControlError } from "../errors";

export interface WebhookSettings {
  /**
   * Whether payloads report computed cells that a change affected. The reference says that they may, but not that they
   * always do, so readers must work with both.
   */
  computedCells: "emitted" | "not emitted";
  /** From a change until its payload can be listed, and until its earliest notification. */
  payloadDelayMs: number;
  /** A change of more records is split over several payloads. */
  recordsPerPayload: number;
  /** For a cursor older than the stored payloads: continue at the oldest payload, or answer 422. */
  oldCursor: "skip" | "refuse";
  /** From a payload until its notification. */
  pingDelayMs: number;
  /** The share of notifications that are never sent and never retried, 0 to 1. */
  pingLoss: number;
  /** The share of notifications that are sent twice, 0 to 1. */
  pingDuplication: number;
  /** The wait before the first retry of a failed notification; it doubles with each retry. */
  pingRetryMs: number;
  /** After this many retries, the webhook's notifications are switched off. */
  pingMaxRetries: number;
  pingTimeoutMs: number;
}

export function defaultWebhookSettings(): WebhookSettings {
  return {
    computedCells: "emitted",
    payloadDelayMs: 0,
    recordsPerPayload: 500,
    oldCursor: "skip",
    pingDelayMs: 0,
    pingLoss: 0,
    pingDuplication: 0,
    // With 13 retries about a day, as the service is said to do.
    pingRetryMs: 10_000,
    pingMaxRetries: 13,
    pingTimeoutMs: 10_000,
  };
}

const WORDS: Partial<Record<keyof WebhookSettings, readonly string[]>> = {
  computedCells: ["emitted", "not emitted"],
  oldCursor: ["skip", "refuse"],
};

/** @throws ControlError that names an unknown setting or one with an invalid value */
export function mergeWebhookSettings(
  settings: WebhookSettings,
  patch: Partial<WebhookSettings> = {},
): WebhookSettings {
  for (const [name, value] of Object.entries(patch)) {
    if (!(name in settings))
      throw new ControlError(
        `There is no webhook setting "${name}". Use one of: ${Object.keys(settings).join(", ")}.`,
      );
    const words = WORDS[name as keyof WebhookSettings];
    const isGood = words
      ? words.includes(String(value))
      : typeof value === "number" && value >= (name === "recordsPerPayload" ? 1 : 0);
    if (!isGood)
      throw new ControlError(
        `The webhook setting "${name}" must be ${words ? words.map((word) => `"${word}"`).join(" or ") : "a number that makes sense"}.`,
      );
  }
  return { ...settings, ...patch };
}
