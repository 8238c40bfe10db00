/** The plan, the cap and the usage of a workspace, as the workspace and its bases show them. */
import { t } from "elysia";
import { plans } from "../../../core/control/budgets";
import { named, nullable, oneOf, timestamp } from "./parts";

export const plan = named("Plan", oneOf<string>(plans));

export const cap = {
  plan,
  calls_per_month: nullable(t.Integer({ description: "Null means no cap" })),
  reserve: t.Integer({ description: "Calls of the month that are reserved for clients" }),
};

/** The usage of a workspace: all its bases together. */
export const monthlyUse = {
  used: t.Object(
    {
      month: t.String({ description: "Month in UTC, for example 2026-11" }),
      sync: t.Integer(),
      client: t.Integer(),
      console: t.Integer({ description: "Those of `client` that the console made" }),
      by_kind: t.Record(t.String(), t.Integer(), {
        description: "Calls of sync by purpose: payloads, records, sweep, schema, freshness, webhooks",
      }),
    },
    { description: "Calls of the current month" },
  ),
  forecast: t.Object(
    {
      calls: nullable(t.Integer({ description: "Expected calls of the month at its end" })),
      next_day: nullable(t.Integer({ description: "Expected calls of the next whole day (UTC)" })),
      at: timestamp,
      ends_inside: nullable(t.Boolean()),
      missing: nullable(
        oneOf(["history", "regularity"], {
          meanings: {
            history: "The bases have been synced for less than seven whole days",
            regularity: "Calls differ too much from day to day",
          },
        }),
      ),
    },
    {
      description:
        "Expected calls if the next days are like those of the last week; null without a reliable forecast",
    },
  ),
  state: oneOf(["no_cap", "inside", "spent", "over"], {
    meanings: {
      spent: "Sync has used its share; clients have their reserve",
      over: "The cap itself is exceeded",
    },
  }),
  left: nullable(t.Integer({ description: "Calls that sync may still make this month" })),
  rate_per_hour: nullable(t.Number({ description: "Rate at which each syncing base may use them" })),
  slowed: nullable(
    t.Object(
      {
        until: timestamp,
        is_certain: t.Boolean({ description: "False if inferred from Airtable's refusals" }),
      },
      {
        description:
          "Airtable answers only two calls a second, and Basetide sends no more, at least until then",
      },
    ),
  ),
};

export const budget = named(
  "Budget",
  t.Object(
    {
      workspace_id: t.String(),
      ...cap,
      ...monthlyUse,
      spent: t.Boolean({
        description: "Sync has no calls left until the end of the month; clients can keep calling",
      }),
    },
    {
      description:
        "Call budget of the base's workspace; null without a workspace, and therefore without a cap",
    },
  ),
);
