/**
 * Airtable's limits, from its reference and its price list. No other module contains these numbers.
 *
 * Source: "Rate limits", "List records", "Webhooks overview" and "Managing API call limits" in Airtable's
 * documentation.
 */
import type { SourceLimits, SourcePlan, WebhookLimits } from "../limits";

export const limits: SourceLimits = {
  windowMs: 1000,
  requestsPerWindow: 5,
  slowedPerWindow: 2,
  userRequestsPerWindow: 50,
  penaltyMs: 30_000,
  pageSize: 100,
  // Airtable says "about two hours".
  attachmentUrlMs: 100 * 60_000,
};

export const airtablePlans: readonly SourcePlan[] = [
  { id: "business", name: "Business", callsPerMonth: null, beyond: "unlimited" },
  { id: "team", name: "Team", callsPerMonth: 100_000, beyond: "slowed" },
  { id: "free", name: "Free", callsPerMonth: 1000, beyond: "blocked" },
];

export const webhookLimits: WebhookLimits = {
  maxPerBase: 10,
  lifetimeMs: 7 * 24 * 3600 * 1000,
};
