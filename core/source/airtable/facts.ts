/** Airtable's properties that are known without a connection. */
import type { PlatformFacts } from "../types";
import { dialect } from "./dialect";
import { airtablePlans, isAirtableId, isExactId, limits, webhookLimits } from "./limits";
import { ENDING_ERRORS } from "./payloads";
import { isSignedNotification } from "./webhooks";

const KINDS = { table: "tbl", field: "fld", record: "rec" } as const;

export const airtable: PlatformFacts = {
  id: "airtable",
  name: "Airtable",
  summary: "Every table of a base, kept up to date. You need a personal access token.",
  keyHelpUrl: "https://airtable.com/create/tokens",
  keyScopes: { schema: "schema.bases:read", records: "data.records:read", changes: "webhook:manage" },
  keyProblem,
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
  sample,
};

function keyProblem(text: string): string | null {
  if (/^key[0-9A-Za-z]{14}$/.test(text)) {
    return "This is an API key of the old kind (key…), which Airtable has switched off. Create a personal access token (pat…).";
  }
  // The id, a dot, and the secret.
  if (/^pat[^.]*$/.test(text)) {
    return "This token is incomplete: it has two parts with a dot between them (pat….…). Copy all of it.";
  }
  return null;
}

/** Record times have a resolution of one second: a change counts as old as the start of its second. */
const GRAIN_MS = 1000;

/**
 * Returns a formula for records changed or created at `sinceMs` or later.
 *
 * `LAST_MODIFIED_TIME()` is the last change of a cell that is not computed, by a person, an automation or the API. It
 * may be blank for a record that was created empty, duplicated or imported, hence `CREATED_TIME()`. Neither changes for
 * a computed cell, a renamed choice, a retyped field or a comment.
 */
export function modifiedSince(sinceMs: number): string {
  // IS_AFTER is strict.
  const since = new Date(Math.floor(sinceMs / GRAIN_MS) * GRAIN_MS - 1).toISOString();
  return `OR(IS_AFTER(LAST_MODIFIED_TIME(), '${since}'), IS_AFTER(CREATED_TIME(), '${since}'))`;
}

/** The last characters of an id by which records are sampled: they differ even if ids were made one after the other. */
const SAMPLED_CHARACTERS = 4;

/**
 * Returns a formula that ids with certain last characters match. Ids are random: each character of their alphabet is
 * as frequent as any other in each place.
 */
export function sample(ids: readonly string[]): { filter: string; share: number } {
  const seen = ids
    .flatMap((id) => [...id.slice(-SAMPLED_CHARACTERS)])
    .filter((one) => /^[0-9A-Za-z]$/.test(one));
  const alphabet = [...new Set(seen)].sort();
  const size = Math.max(1, alphabet.length);
  const conditions: string[] = [];
  let share = 1;
  for (let place = 1; place <= SAMPLED_CHARACTERS; place++) {
    const wanted = Math.round(size / (share * limits.pageSize));
    if (wanted >= size) break;
    const chosen = alphabet.slice(0, Math.max(1, wanted));
    share *= Math.max(1, chosen.length) / size;
    conditions.push(`FIND(LEFT(RIGHT(RECORD_ID(),${place}),1),'${chosen.join("")}')>0`);
  }
  return { filter: `AND(${conditions.join(",")})`, share };
}
