/**
 * The settings of a running sandbox. Times are ms.
 */
import { DEFAULT_URL_LIFE_MS } from "./attachments";
import { ControlError } from "./errors";
import { defaultWebhookSettings, mergeWebhookSettings, type WebhookSettings } from "./webhooks/settings";

export interface Span {
  minMs: number;
  maxMs: number;
}

export interface Settings {
  /** The answer to a request over the limit: `plural` was observed in production, `object` is documented. */
  rateLimitForm: "plural" | "object";
  /** The same for a call beyond the month's cap (`caps.ts`). */
  billingLimitForm: "plural" | "object";
  requestsPerSecondPerBase: number;
  requestsPerSecondPerUser: number;
  /** After a 429, all requests to the base are refused for this long. */
  penaltyMs: number;
  /** Whether requests during the penalty restart it. */
  penaltyExtends: boolean;
  /** Bases without a limit. */
  unlimitedBases: string[];
  /** No limits, including those of users. */
  rateLimitOff: boolean;
  /** A list iterator is deleted after this long without a request. */
  iteratorLifeMs: number;
  attachmentUrlLifeMs: number;
  /** Before the state is read or changed, and after. */
  latency: { before: Span; after: Span; seed: number };
  /** `pat`: an unknown table is 403, as with today's tokens; `legacy`: 404 `TABLE_NOT_FOUND`. */
  notFoundMode: "pat" | "legacy";
  /** Reject query parameters that the call does not know. */
  strictQuery: boolean;
  webhooks: WebhookSettings;
  /**
   * Added to the machine's clock; iterators, attachment URLs, record times, webhooks and the month of the caps use it.
   */
  clockOffsetMs: number;
}

export function defaultSettings(): Settings {
  return {
    rateLimitForm: "plural",
    billingLimitForm: "object",
    requestsPerSecondPerBase: 5,
    requestsPerSecondPerUser: 50,
    penaltyMs: 30_000,
    penaltyExtends: false,
    unlimitedBases: [],
    rateLimitOff: false,
    iteratorLifeMs: 5 * 60_000,
    attachmentUrlLifeMs: DEFAULT_URL_LIFE_MS,
    latency: { before: { minMs: 0, maxMs: 0 }, after: { minMs: 0, maxMs: 0 }, seed: 1 },
    notFoundMode: "pat",
    strictQuery: true,
    webhooks: defaultWebhookSettings(),
    clockOffsetMs: 0,
  };
}

export type SettingsPatch = Partial<Omit<Settings, "latency" | "webhooks">> & {
  webhooks?: Partial<WebhookSettings>;
  latency?: { before?: Partial<Span>; after?: Partial<Span>; seed?: number };
};

/** @throws ControlError that names an unknown setting or one of another type */
export function mergeSettings(settings: Settings, patch: SettingsPatch): Settings {
  const known: Record<string, unknown> = { ...settings };
  for (const [name, value] of Object.entries(patch)) {
    if (!(name in known))
      throw new ControlError(`There is no setting "${name}". Use one of: ${Object.keys(known).join(", ")}.`);
    if (typeof value !== typeof known[name])
      throw new ControlError(`The setting "${name}" must be a ${typeof known[name]}.`);
  }
  const { latency, webhooks, ...rest } = patch;
  return {
    ...settings,
    ...rest,
    webhooks: mergeWebhookSettings(settings.webhooks, webhooks),
    latency: {
      before: span(settings.latency.before, latency?.before),
      after: span(settings.latency.after, latency?.after),
      seed: latency?.seed ?? settings.latency.seed,
    },
  };
}

function span(now: Span, patch: Partial<Span> = {}): Span {
  const minMs = patch.minMs ?? now.minMs;
  const merged = { minMs, maxMs: Math.max(minMs, patch.maxMs ?? now.maxMs) };
  if (merged.minMs < 0) throw new ControlError("A latency cannot be negative.");
  return merged;
}
