/** Request and answer schemas for workspaces, their plans and their usage. */
import { t } from "elysia";
import { plans } from "../../core/control/budgets";
import { nullable, strict, timestamp } from "./schema-parts";

// A union of literals: Elysia's enumerations have a default, and a property that is not given must stay as it is.
const plan = t.Unsafe<string>(t.Union(plans.map((id) => t.Literal(id))));

const cap = {
  plan,
  calls_per_month: nullable(t.Integer({ description: "Null: no cap" })),
  reserve: t.Integer({ description: "Calls of the month that sync leaves to clients" }),
};

/** The usage of a workspace: all its bases together. */
const use = {
  used: t.Object(
    {
      month: t.String({ description: "UTC: 2026-11" }),
      sync: t.Integer(),
      client: t.Integer(),
      by_kind: t.Record(t.String(), t.Integer(), {
        description: "What those of sync were for: payloads, records, sweep, schema, freshness, hooks",
      }),
    },
    { description: "Calls of the running month" },
  ),
  forecast: t.Object(
    { calls: t.Integer(), at: timestamp, ends_inside: t.Boolean() },
    { description: "What the month ends with if it goes on like this" },
  ),
  state: t.Union([
    t.Literal("no_cap"),
    t.Literal("inside"),
    t.Literal("spent", { description: "Nothing is left to sync; clients have their reserve" }),
    t.Literal("over", { description: "Beyond the cap itself" }),
  ]),
  left: nullable(t.Integer({ description: "Calls that sync may still make this month" })),
  rate_per_hour: nullable(t.Number({ description: "Of those, for each base that syncs" })),
  slowed: nullable(
    t.Object(
      {
        until: timestamp,
        is_certain: t.Boolean({ description: "False: judging by what the source refuses" }),
      },
      { description: "The source answers only twice a second, and is asked no faster, until then at least" },
    ),
  ),
};

export const budget = t.Object(
  {
    workspace_id: t.String(),
    ...cap,
    ...use,
    spent: t.Boolean({ description: "Sync has nothing left until the month ends; clients go on" }),
  },
  {
    description: "What its workspace may still be asked; null without a workspace, and then without a cap",
  },
);

const workspaceCalls = nullable(
  t.Integer({ minimum: 1, maximum: 2_000_000_000, description: "With custom; null: no cap" }),
);
const workspaceChanges = {
  name: t.String({ minLength: 1, maxLength: 100 }),
  plan,
  calls_per_month: workspaceCalls,
  reserve: t.Integer({
    minimum: 0,
    maximum: 2_000_000_000,
    description: "A fifth of the calls unless given",
  }),
};

export const workspaceParams = t.Object({
  id: t.String({ maxLength: 100, description: "Id of the workspace: wsp_…" }),
});

export const newWorkspace = t.Object(
  {
    name: workspaceChanges.name,
    plan: workspaceChanges.plan,
    calls_per_month: t.Optional(workspaceCalls),
    reserve: t.Optional(workspaceChanges.reserve),
  },
  strict,
);

export const workspaceChange = t.Partial(t.Object(workspaceChanges), { ...strict, minProperties: 1 });

export const workspace = t.Object({
  id: t.String(),
  name: t.String(),
  ...cap,
  bases: t.Array(t.String(), { description: "Ids" }),
  ...use,
  created_at: timestamp,
});

export const workspaces = t.Array(workspace);
