/**
 * Airtable's limits, from its reference and its price list, and the form of its ids. No other module contains either.
 *
 * Source of the limits: "Rate limits", "List records", "Webhooks overview" and "Managing API call limits" in
 * Airtable's documentation. Ids are three letters for the kind, followed by some characters. Their number and set are
 * observed and not guaranteed, so these checks require no more than our use of ids does: names of auxiliary tables, keys
 * of objects, parts of paths and of formulas.
 */
import type { SourceLimits, SourcePlan, WebhookLimits } from "../limits";

export const limits: SourceLimits = {
  windowMs: 1000,
  requestsPerWindow: 5,
  slowedPerWindow: 2,
  userRequestsPerWindow: 50,
  penaltyMs: 30_000,
  pageSize: 100,
  writeSize: 10,
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

/** Postgres truncates names to 63 bytes, and the name of a table's key contains its id. */
const ID = /^[a-z]{3}[0-9A-Za-z_-]{1,50}$/;

/** Observed for every id, and for no name given by a user: matching text is treated as an id, not as a name. */
const EXACT = /^[a-z]{3}[0-9A-Za-z]{14}$/;

export type AirtableIdKind = "tbl" | "fld" | "rec";

export function isAirtableId(kind: AirtableIdKind, id: string): boolean {
  return id.startsWith(kind) && ID.test(id);
}

export function isExactId(kind: AirtableIdKind, text: string): boolean {
  return text.startsWith(kind) && EXACT.test(text);
}
