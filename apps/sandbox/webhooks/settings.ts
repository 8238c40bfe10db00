/**
 * What can be set about webhooks while the sandbox runs. Times are ms.
 */
import { ControlError } from "../errors";

export interface WebhookSettings {
  /**
   * Do payloads name computed cells that a change moved? The reference says that they may and not that they
   * always do, so whoever reads them has to be right with both.
   */
  computedCells: "emitted" | "not emitted";
  /** From a change until its payload can be listed, and until its ping at the earliest. */
  payloadDelayMs: number;
  /** A change of more records is split over several payloads. */
  recordsPerPayload: number;
  /** A cursor older than what is kept: go on at the oldest payload, or 422. */
  oldCursor: "skip" | "refuse";
  /** From a payload until its ping. */
  pingDelayMs: number;
  /** Share of pings that are never sent and never retried, 0 to 1. */
  pingLoss: number;
  /** Share of pings that are sent twice, 0 to 1. */
  pingDuplication: number;
  /** Wait before the first retry of a failed ping; it doubles with each. */
  pingRetryMs: number;
  /** Retries after which a hook's notifications are switched off. */
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
    // With 13 retries about a day, as the service is said to keep it up.
    pingRetryMs: 10_000,
    pingMaxRetries: 13,
    pingTimeoutMs: 10_000,
  };
}

const WORDS: Partial<Record<keyof WebhookSettings, readonly string[]>> = {
  computedCells: ["emitted", "not emitted"],
  oldCursor: ["skip", "refuse"],
};

/** @throws ControlError naming a setting that does not exist or has a value that it cannot have */
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
