/** The kinds of alerts, and those that are on by default. */

export const alertKinds = [
  "red",
  "recovered",
  "needs_attention",
  "call_budget",
  "new_table",
  "proposal_waiting",
  "breaking_change",
  "schema_changed",
] as const;

export type AlertKind = (typeof alertKinds)[number];

/** As settings show them. */
export const alertKindLabels: Record<AlertKind, { label: string; short: string; hint: string }> = {
  red: {
    label: "A base turns red",
    short: "red",
    hint: "It has failed or been far too slow for at least two minutes.",
  },
  recovered: {
    label: "A base recovers",
    short: "recovered",
    hint: "It was red or needed attention, and works again.",
  },
  needs_attention: {
    label: "A base needs attention",
    short: "key",
    hint: "Airtable rejects the key, or sync has stopped until someone acts.",
  },
  call_budget: {
    label: "A call budget runs out",
    short: "budget",
    hint: "The workspace will exceed its monthly cap, or sync has used its share of it.",
  },
  new_table: {
    label: "A new table waits for a decision",
    short: "new tables",
    hint: "A table was created in Airtable, and the base asks before it copies new tables.",
  },
  proposal_waiting: {
    label: "A proposal waits for a decision",
    short: "proposals",
    hint: "An agent proposes changes of records, which a member approves or rejects.",
  },
  breaking_change: {
    label: "A schema change breaks queries",
    short: "breaking changes",
    hint: "Tables or columns were dropped, renamed or given another type.",
  },
  schema_changed: {
    label: "A base changes its schema otherwise",
    short: "other changes",
    hint: "Tables or columns were added; no query breaks.",
  },
};

export const usualKinds: AlertKind[] = [
  "red",
  "recovered",
  "needs_attention",
  "call_budget",
  "new_table",
  "proposal_waiting",
  "breaking_change",
];

/** Returns each kind once, in the order in which they are shown. */
export function inOrder(kinds: readonly string[]): AlertKind[] {
  return alertKinds.filter((kind) => kinds.includes(kind));
}

/** The content of an alert, besides its kind. */
export interface AlertFacts {
  name: string;
  /** ISO 8601. */
  since: string;
  /** The reason, in the indicator's words; for a budget, in the budget's. */
  reason: string;
  /** Of the error that stops the base. */
  code?: string;
  /** How often the condition occurred with less than an hour in between. */
  times: number;
  /** call_budget: the state of the budget. */
  level?: BudgetLevel;
  /** call_budget: when the next month's calls begin to count, ISO 8601. */
  endsAt?: string;
  /** new_table, breaking_change, schema_changed, proposal_waiting: the first as text, and the number of all. */
  changes?: string[];
  changeCount?: number;
  /** proposal_waiting: the id of the only one. */
  proposal?: string;
}

/** From best to worst. */
export const budgetLevels = ["inside", "forecast", "spent", "over"] as const;

/** `forecast`: the month will end above the cap; `spent`: sync has no calls left; `over`: above the cap itself. */
export type BudgetLevel = (typeof budgetLevels)[number];

/** An alert as it is stored. */
export interface Alert {
  id: string;
  kind: AlertKind;
  at: Date;
  baseId: string | null;
  workspaceId: string | null;
  facts: AlertFacts;
}
