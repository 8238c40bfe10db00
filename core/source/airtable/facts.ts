/** Airtable's properties that are known without a connection. */
import type { PlatformFacts } from "../types";
import { dialect } from "./dialect";
import { isAirtableId, isExactId } from "./ids";
import { airtablePlans, limits, webhookLimits } from "./limits";
import { modifiedSince } from "./modified-since";
import { isSignedNotification } from "./notification-signature";
import { ENDING_ERRORS } from "./payloads";

const KINDS = { table: "tbl", field: "fld", record: "rec" } as const;

export const airtable: PlatformFacts = {
  id: "airtable",
  name: "Airtable",
  summary: "Every table of a base, kept up to date. You need a personal access token.",
  keyHelpUrl: "https://airtable.com/create/tokens",
  keyScopes: { schema: "schema.bases:read", records: "data.records:read", changes: "webhook:manage" },
  limits,
  plans: airtablePlans,
  ids: {
    mayBe: (kind, text) => isAirtableId(KINDS[kind], text),
    isSurely: (kind, text) => isExactId(KINDS[kind], text),
  },
  webhooks: { ...webhookLimits, isSignedNotification, endingErrors: ENDING_ERRORS },
  recordUrl: (...ids) =>
    `https://airtable.com/${ids.map((id) => encodeURIComponent(id.toWellFormed())).join("/")}`,
  dialect,
  modifiedSince,
};
