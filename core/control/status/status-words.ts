/** The words for each error of a base: the badge, one headline, and one thing to do. */
import type { ErrorCode } from "../../errors";

/** Where the remedy is; the page turns it into a link or a form. */
export interface Remedy {
  text: string;
  to: "key" | "budget" | "resume" | "runs" | "resync" | "issues" | "feed";
}

interface ErrorWords {
  word: string;
  headline: string;
  remedy: Remedy | null;
}

const newKey: Remedy = { text: "Add a new API key", to: "key" };
const runs: Remedy = { text: "See the latest runs", to: "runs" };
const budget: Remedy = { text: "Raise the budget", to: "budget" };

const UNREACHABLE: ErrorWords = {
  word: "Airtable unreachable",
  headline: "Airtable did not answer, or answered with an error of its own.",
  remedy: null,
};

const words: Partial<Record<ErrorCode, ErrorWords>> = {
  source_key_refused: {
    word: "Key rejected",
    headline: "Airtable rejected the API key: it is wrong or was revoked.",
    remedy: newKey,
  },
  source_forbidden: {
    word: "No access",
    headline: "The API key cannot read this base, lacks a scope, or the base no longer exists.",
    remedy: newKey,
  },
  source_rate_limited: {
    word: "Waiting for Airtable",
    headline: "Airtable asked for a pause because of too many requests.",
    remedy: null,
  },
  source_billing_limit: {
    word: "Over Airtable's limit",
    headline:
      "Airtable's monthly limit of API calls is reached. Upgrade the plan there, or wait for the next month.",
    remedy: null,
  },
  source_unavailable: UNREACHABLE,
  source_timeout: UNREACHABLE,
  source_bad_answer: UNREACHABLE,
  quota_timeout: {
    word: "Rate limit busy",
    headline: "Your apps use the whole rate limit of this base, and leave sync no request.",
    remedy: null,
  },
  budget_spent: {
    word: "Over budget",
    headline: "Sync has used its share of this month's call budget. The rest is reserved for your apps.",
    remedy: budget,
  },
  replica_unavailable: {
    word: "Database unreachable",
    headline: "The base's database cannot be reached.",
    remedy: runs,
  },
  replica_busy: {
    word: "Table locked",
    headline: "A query or transaction holds a lock on a table. End it, and syncing continues.",
    remedy: null,
  },
  replica_refused: {
    word: "Refused in SQL",
    headline:
      "A constraint, a trigger or another object of yours prevents the update or the change of a table. Relax, rename or drop it, and syncing continues.",
    remedy: null,
  },
  destination_invalid: {
    word: "Database refused",
    headline: "The destination database cannot be used.",
    remedy: runs,
  },
  sync_crashed: {
    word: "Crashing",
    headline: "Syncing this base crashed several times, so Basetide retries it less often.",
    remedy: { text: "Resync", to: "resync" },
  },
  control_unavailable: {
    word: "Not syncing",
    headline: "Basetide's own database could not be reached.",
    remedy: null,
  },
};

export function statusOfError(code: ErrorCode): ErrorWords {
  return words[code] ?? { word: "Failing", headline: "The last sync failed.", remedy: runs };
}
