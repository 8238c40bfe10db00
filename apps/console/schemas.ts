/** Request and answer schemas of the management API. The OpenAPI document is generated from them. */
import { t } from "elysia";
import { budget } from "./budget-schemas";
import { nullable, strict, timestamp } from "./schema-parts";
import { indexes, indexesChange, plainSettings } from "./setting-schemas";

export * from "./budget-schemas";

const apiKey = t.String({
  minLength: 1,
  maxLength: 1000,
  pattern: "^[!-~]+$",
  description: "API key of the source",
});
const syncKind = t.Union([
  t.Literal("first"),
  t.Literal("rebuild"),
  t.Literal("sweep"),
  t.Literal("rapid", { description: "A turn over all tables, asking each for what was modified" }),
  t.Literal("live", { description: "A round over what the source's feed told of" }),
]);

export const idParams = t.Object({ id: t.String({ maxLength: 100, description: "Id of the base: bas_…" }) });

const workspaceId = nullable(
  t.String({ maxLength: 100, description: "Of the workspace whose cap its calls count against: wsp_…" }),
);

export const settingsChange = t.Partial(
  t.Object({ ...plainSettings, indexes: indexesChange, api_key: apiKey, workspace_id: workspaceId }),
  { ...strict, minProperties: 1 },
);

export const keyCheck = t.Object({ platform: t.String({ maxLength: 50 }), api_key: apiKey }, strict);

const destination = t.Union(
  [
    t.Object({ kind: t.Literal("new") }, { ...strict, title: "A database made for this base" }),
    t.Object(
      {
        kind: t.Literal("existing"),
        database_id: t.String({ maxLength: 100 }),
        schema: t.String({ maxLength: 63 }),
      },
      { ...strict, title: "A schema of a database that the account has" },
    ),
    t.Object(
      {
        kind: t.Literal("external"),
        url: t.String({ maxLength: 2000 }),
        schema: t.Optional(t.String({ maxLength: 63 })),
      },
      { ...strict, title: "A database that you host" },
    ),
  ],
  { description: "Where the replica goes; a new database by default" },
);

export const destinationCheck = t.Object(
  { url: t.String({ maxLength: 2000 }), schema: t.Optional(t.String({ maxLength: 63 })) },
  strict,
);

export const destinationChecks = t.Object({
  is_usable: t.Boolean({ description: "No check has found a problem" }),
  checks: t.Array(
    t.Object({
      check: t.String({ description: "address, connection, pooler, encryption, latency, rights or schema" }),
      status: t.Union([t.Literal("ok"), t.Literal("warning"), t.Literal("problem")]),
      message: t.String(),
      remedy: nullable(t.String({ description: "SQL to run there, or what to change in the URL" })),
    }),
  ),
});

export const newBase = t.Object(
  {
    platform: t.String({ maxLength: 50 }),
    api_key: apiKey,
    base_id: t.String({ minLength: 1, maxLength: 100, pattern: "^[A-Za-z0-9_-]+$" }),
    destination: t.Optional(destination),
    settings: t.Optional(t.Partial(t.Object(plainSettings), strict)),
    workspace_id: t.Optional(workspaceId),
  },
  strict,
);

export const runsQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 1000, description: "50 unless given" })),
});

export const platformList = t.Array(t.Object({ id: t.String(), name: t.String(), key_help_url: t.String() }));

export const sourceBases = t.Array(t.Object({ id: t.String(), name: t.String(), permission: t.String() }));

const live = t.Object(
  {
    state: t.Union([
      t.Literal("making"),
      t.Literal("on"),
      t.Literal("refused", { description: "The base is swept instead" }),
    ]),
    reason: t.String({ description: "Of refused: what the key or the source lacks" }),
    by: t.Union([t.Literal("ping"), t.Literal("poll")], {
      description: "Whether the source tells that there is something new, or is asked",
    }),
    last_change_at: nullable(timestamp),
    read_at: nullable(timestamp),
    due_at: nullable(timestamp),
    waiting: t.Integer({ description: "Records known to have changed and not read again yet" }),
    waiting_since: nullable(timestamp),
    missed: t.Integer({ description: "Records that only a sweep found changed" }),
    missed_at: nullable(timestamp),
    compared_at: nullable(timestamp),
    drifted_since: nullable(timestamp),
    gap_since: nullable(
      t.String({ format: "date-time", description: "What changed before then is left to a sweep" }),
    ),
    expires_at: nullable(timestamp),
  },
  { description: "The feed of changes that live mode reads; null where that was never tried" },
);

export const base = t.Object({
  id: t.String(),
  platform: t.String(),
  base_id: t.String(),
  name: t.String(),
  state: t.Union([
    t.Literal("starting"),
    t.Literal("active"),
    t.Literal("paused"),
    t.Literal("needs_attention"),
    t.Literal("deleting"),
  ]),
  indicator: t.Object({
    color: t.Union([t.Literal("green"), t.Literal("yellow"), t.Literal("red")]),
    reason: t.String(),
  }),
  settings: t.Object({ ...plainSettings, indexes }),
  database: t.Object({
    id: t.String(),
    name: t.String(),
    schema: t.String(),
    host: t.String(),
    port: t.Integer(),
  }),
  tables: t.Array(
    t.Object({
      name: t.String(),
      source_name: t.String(),
      source_id: t.Optional(t.String()),
      records: t.Integer(),
    }),
  ),
  sync: t.Object(
    {
      kind: nullable(syncKind),
      started_at: nullable(timestamp),
      completed_at: nullable(timestamp),
      duration_ms: nullable(t.Number()),
      lag_ms: nullable(t.Number()),
      progress: nullable(
        t.Object({
          kind: syncKind,
          started_at: timestamp,
          tables: t.Array(
            t.Object({
              name: t.String(),
              source_name: t.String(),
              records_done: t.Integer(),
              records_estimate: nullable(t.Integer()),
              done: t.Boolean(),
              waiting: t.Optional(
                t.Boolean({
                  description: "It has been read, and waits for transactions that hold the table",
                }),
              ),
            }),
          ),
        }),
      ),
    },
    { description: "The last sync that completed, and how far a first sync or a rebuild is" },
  ),
  sweep: nullable(
    t.Object(
      { started_at: timestamp, completed_at: timestamp },
      {
        description:
          "When every record was last read; in rapid mode, deletes and computed fields are as of then",
      },
    ),
  ),
  live: nullable(live),
  budget: nullable(budget),
  error: nullable(
    t.Object(
      {
        code: t.String(),
        message: t.String(),
        since: timestamp,
        until: nullable(timestamp),
      },
      { description: "Why syncs fail, since when, and until when where that is known" },
    ),
  ),
  issues: t.Array(
    t.Object({
      table: t.String(),
      record_id: t.String(),
      column: t.String(),
      value: t.String(),
      reason: t.String(),
    }),
    {
      description:
        "Cells that did not fit their column, and with an empty record_id what a rebuild could not carry over (`value` has the statements that make it): up to 100 of issue_count",
    },
  ),
  issue_count: t.Integer(),
  repairs: t.Integer({ description: "Records written through the proxy that the replica does not show yet" }),
});

export const bases = t.Array(base);

export const credentials = t.Object({
  url: t.String(),
  psql: t.String({ description: "A command line" }),
  host: t.String(),
  port: t.Integer(),
  database: t.String(),
  user: t.String(),
  password: t.String(),
});

export const runs = t.Array(
  t.Object({
    id: t.String(),
    kind: syncKind,
    syncs: t.Integer({
      description:
        "Syncs that were alike are one run: started_at is of the first, completed_at and seen of the last, " +
        "duration_ms the mean, the other counts are sums",
    }),
    started_at: timestamp,
    completed_at: nullable(timestamp),
    duration_ms: nullable(t.Number()),
    longest_ms: nullable(t.Number()),
    seen: t.Integer(),
    inserted: t.Integer(),
    updated: t.Integer(),
    deleted: t.Integer(),
    requests: t.Integer(),
    wait_ms: t.Number(),
    error: nullable(t.Object({ code: t.String(), message: t.String() })),
  }),
);

export const newRequest = t.Object(
  {
    kind: t.Union([
      t.Literal("region"),
      t.Literal("writable"),
      t.Literal("shared_database"),
      t.Literal("other"),
    ]),
    database_id: t.Optional(t.String({ maxLength: 100, description: "Of writable: which database" })),
    region: t.Optional(t.String({ maxLength: 40, description: "Of region: its code" })),
    message: t.Optional(t.String({ maxLength: 2000 })),
  },
  strict,
);

export const operatorRequest = t.Object({
  id: t.String(),
  kind: t.String(),
  database_id: nullable(t.String()),
  region: nullable(t.String()),
  message: t.String(),
  state: t.Union([t.Literal("open"), t.Literal("approved"), t.Literal("denied")]),
  answer: t.String({ description: "What the operator said to it" }),
  created_at: timestamp,
  decided_at: nullable(timestamp),
});

export const operatorRequests = t.Array(operatorRequest);

export const schemaChangesQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 1000, description: "100 unless given" })),
});

export const auditQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 1000, description: "100 unless given" })),
  before: t.Optional(t.String({ maxLength: 20, description: "Id of an entry: only what is older" })),
});

export const auditEntries = t.Array(
  t.Object({
    id: t.String(),
    at: timestamp,
    actor: t.Object(
      {
        kind: t.UnionEnum(["user", "token", "operator", "cli", "system"]),
        name: nullable(t.String()),
      },
      { description: "Address of a member, name of a token; null for who operates the service" },
    ),
    action: t.String({ description: "Such as base.connected" }),
    subject: nullable(t.String({ description: "Id of what was changed" })),
    details: t.Record(t.String(), t.Union([t.String(), t.Number(), t.Boolean(), t.Null()])),
  }),
);

const shapeName = t.Object({
  source_name: t.String(),
  name: t.String({ description: "In SQL" }),
  source_type: t.Optional(t.String()),
  type: t.Optional(t.String({ description: "Of the column" })),
});

export const schemaChanges = t.Array(
  t.Object({
    id: t.String(),
    seen_at: timestamp,
    kind: t.UnionEnum([
      "table_added",
      "table_dropped",
      "table_renamed",
      "table_rebuilt",
      "field_added",
      "field_dropped",
      "field_renamed",
      "field_retyped",
    ]),
    table: t.String({ description: "SQL name after the change; of a dropped one, before it" }),
    field: nullable(
      t.String({ description: "SQL name of the column; null where the change is the table's" }),
    ),
    before: nullable(shapeName),
    after: nullable(shapeName),
  }),
);
