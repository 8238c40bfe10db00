/** Request and answer schemas for workspaces, their plans and their usage. */
import { t } from "elysia";
import { plans } from "../../../core/control/budgets";
import { named, nullable, strict, timestamp } from "./parts";

// A union of literals: Elysia's enumerations have a default, and a property that is not given must stay as it is.
const plan = named("Plan", t.Unsafe<string>(t.Union(plans.map((id) => t.Literal(id)))));

const cap = {
  plan,
  calls_per_month: nullable(t.Integer({ description: "Null means no cap" })),
  reserve: t.Integer({ description: "Calls of the month that are reserved for clients" }),
};

/** The usage of a workspace: all its bases together. */
const use = {
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
        t.Union([
          t.Literal("history", { description: "The bases have been synced for less than seven whole days" }),
          t.Literal("regularity", { description: "Calls differ too much from day to day" }),
        ]),
      ),
    },
    {
      description:
        "Expected calls if the next days are like those of the last week; null without a reliable forecast",
    },
  ),
  state: t.Union([
    t.Literal("no_cap"),
    t.Literal("inside"),
    t.Literal("spent", { description: "Sync has used its share; clients have their reserve" }),
    t.Literal("over", { description: "The cap itself is exceeded" }),
  ]),
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
      ...use,
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

const workspaceCalls = nullable(
  t.Integer({
    minimum: 1,
    maximum: 2_000_000_000,
    description: "Only with the plan `custom`; null means no cap",
  }),
);
const workspaceChanges = {
  name: t.String({ minLength: 1, maxLength: 100 }),
  plan,
  calls_per_month: workspaceCalls,
  reserve: t.Integer({
    minimum: 0,
    maximum: 2_000_000_000,
    description: "Default: a fifth of the calls",
  }),
};

export const workspaceParams = t.Object({
  id: t.String({ maxLength: 100, description: "Id of the workspace: wsp_…" }),
});

export const newWorkspace = named(
  "NewWorkspace",
  t.Object(
    {
      name: workspaceChanges.name,
      plan: workspaceChanges.plan,
      calls_per_month: t.Optional(workspaceCalls),
      reserve: t.Optional(workspaceChanges.reserve),
    },
    strict,
  ),
  { name: "Marketing", plan: plans[1]! },
);

export const workspaceChange = named(
  "WorkspaceChange",
  t.Partial(t.Object(workspaceChanges), { ...strict, minProperties: 1 }),
  { plan: "custom", calls_per_month: 80_000, reserve: 10_000 },
);

export const workspace = named(
  "Workspace",
  t.Object({
    id: t.String(),
    name: t.String(),
    ...cap,
    bases: t.Array(t.String(), { description: "Ids of the bases" }),
    ...use,
    created_at: timestamp,
  }),
);

export const workspaces = t.Array(workspace);
