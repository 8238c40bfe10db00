/** Request and answer schemas of the management API. The OpenAPI document is generated from them. */
import { t } from "elysia";
import { platformFacts } from "../../core/source";
import { budget } from "./budget-schemas";
import { named, nullable, strict, timestamp } from "./schema-parts";
import { indexes, indexesChange, plainSettings } from "./setting-schemas";

export * from "./budget-schemas";

const apiKey = t.String({
  minLength: 1,
  maxLength: 1000,
  pattern: "^[!-~]+$",
  description: "Airtable API key",
});
const syncKind = named(
  "SyncKind",
  t.Union([
    t.Literal("first"),
    t.Literal("rebuild"),
    t.Literal("sweep"),
    t.Literal("rapid", {
      description: "A cycle over all tables, which requests the modified records of each",
    }),
    t.Literal("live", { description: "A batch of changes that Airtable's feed reported" }),
  ]),
);

export const idParams = t.Object({ id: t.String({ maxLength: 100, description: "Id of the base: bas_…" }) });

const workspaceId = nullable(
  t.String({ maxLength: 100, description: "Id of the workspace whose cap includes the base's calls: wsp_…" }),
);

export const settingsChange = named(
  "BaseChange",
  t.Partial(
    t.Object({ ...plainSettings, indexes: indexesChange, api_key: apiKey, workspace_id: workspaceId }),
    { ...strict, minProperties: 1 },
  ),
  { turbo: true, indexes: [{ table: "project_tasks", column: "due_date" }] },
);

export const keyCheck = named(
  "KeyCheck",
  t.Object({ platform: t.String({ maxLength: 50 }), api_key: apiKey }, strict),
  { platform: platformFacts[0]!.id, api_key: "patXXXXXXXXXXXXXX.XXXXXXXX" },
);

const destination = named(
  "Destination",
  t.Union(
    [
      t.Object(
        {
          kind: t.Literal("new"),
          region: t.Optional(
            t.String({ maxLength: 40, description: "Of the cluster; default: the account's" }),
          ),
        },
        { ...strict, title: "A new database for this base" },
      ),
      t.Object(
        {
          kind: t.Literal("existing"),
          database_id: t.String({ maxLength: 100 }),
          schema: t.String({ maxLength: 63 }),
        },
        { ...strict, title: "A schema in one of the account's databases" },
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
    { description: "Where to create the replica; default: a new database" },
  ),
);

export const destinationCheck = named(
  "DestinationCheck",
  t.Object({ url: t.String({ maxLength: 2000 }), schema: t.Optional(t.String({ maxLength: 63 })) }, strict),
  { url: "postgres://basetide:secret@db.example.com:5432/analytics?sslmode=require", schema: "crm" },
);

export const destinationChecks = named(
  "DestinationChecks",
  t.Object({
    is_usable: t.Boolean({ description: "Whether no check found a problem" }),
    checks: t.Array(
      t.Object({
        check: t.String({
          description: "address, connection, pooler, encryption, latency, rights or schema",
        }),
        status: t.Union([t.Literal("ok"), t.Literal("warning"), t.Literal("problem")]),
        message: t.String(),
        remedy: nullable(
          t.String({ description: "SQL to run on the server, or the change to make in the URL" }),
        ),
      }),
    ),
  }),
);

export const newBase = named(
  "NewBase",
  t.Object(
    {
      platform: t.String({ maxLength: 50 }),
      api_key: apiKey,
      base_id: t.String({ minLength: 1, maxLength: 100, pattern: "^[A-Za-z0-9_-]+$" }),
      destination: t.Optional(destination),
      settings: t.Optional(t.Partial(t.Object(plainSettings), strict)),
      workspace_id: t.Optional(workspaceId),
    },
    strict,
  ),
  { platform: platformFacts[0]!.id, api_key: "patXXXXXXXXXXXXXX.XXXXXXXX", base_id: "appW4Xn2Yq8Lr5TzK" },
);

export const runsQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 1000, description: "Default: 50" })),
});

export const platformList = t.Array(
  named("Platform", t.Object({ id: t.String(), name: t.String(), key_help_url: t.String() })),
);

export const sourceBases = t.Array(
  named("SourceBase", t.Object({ id: t.String(), name: t.String(), permission: t.String() })),
);

const live = named(
  "LiveFeed",
  t.Object(
    {
      state: t.Union([
        t.Literal("making"),
        t.Literal("on"),
        t.Literal("refused", { description: "There is no feed; the base is swept" }),
      ]),
      reason: t.String({ description: "For `refused`: why there is no feed" }),
      by: t.Union([t.Literal("notification"), t.Literal("poll")], {
        description: "Whether Airtable sends notifications of new changes, or Basetide polls",
      }),
      last_change_at: nullable(timestamp),
      read_at: nullable(timestamp),
      due_at: nullable(timestamp),
      waiting: t.Integer({
        description: "Records that are known to have changed and have not been read yet",
      }),
      waiting_since: nullable(timestamp),
      missed: t.Integer({
        description: "Changed records that the feed did not report, and a full check found",
      }),
      missed_at: nullable(timestamp),
      compared_at: nullable(timestamp),
      drifted_since: nullable(timestamp),
      gap_since: nullable(
        t.String({
          format: "date-time",
          description: "Changes before this time may be missing until a full check completes",
        }),
      ),
      expires_at: nullable(timestamp),
    },
    { description: "The feed of changes that live mode reads; null if live mode has never been tried" },
  ),
);

export const base = named(
  "Base",
  t.Object({
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
    indicator: named(
      "Indicator",
      t.Object({
        color: t.Union([t.Literal("green"), t.Literal("yellow"), t.Literal("red")]),
        reason: t.String(),
      }),
    ),
    settings: named("Settings", t.Object({ ...plainSettings, indexes })),
    database: named(
      "Database",
      t.Object({
        id: t.String(),
        name: t.String(),
        schema: t.String(),
        host: t.String(),
        port: t.Integer(),
      }),
    ),
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
            pages: t.Optional(t.Integer({ description: "Pages of records that were read" })),
            calls: t.Optional(
              t.Integer({
                description: "Calls of this sync; absent if other work makes calls at the same time",
              }),
            ),
            tables: t.Array(
              t.Object({
                name: t.String(),
                source_name: t.String(),
                records_done: t.Integer(),
                records_estimate: nullable(t.Integer()),
                done: t.Boolean({ description: "The table can be queried" }),
                waiting: t.Optional(
                  t.Boolean({
                    description:
                      "The table has been read, and waits for transactions that lock the live table",
                  }),
                ),
              }),
            ),
          }),
        ),
      },
      { description: "The last completed sync, and the progress of a first sync or a rebuild" },
    ),
    sweep: nullable(
      t.Object(
        { started_at: timestamp, completed_at: timestamp },
        {
          description:
            "The last time that every record was read; in rapid mode, deletes and computed fields are as of this time",
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
        { description: "Why syncs fail, since when, and until when if known" },
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
          "Cells that do not fit their column and, with an empty record_id, objects that a rebuild could not carry over (`value` contains the statements that create them). At most 100 of issue_count",
      },
    ),
    issue_count: t.Integer(),
    repairs: t.Integer({
      description: "Records written through the proxy that the replica does not show yet",
    }),
  }),
);

export const bases = t.Array(base);

export const credentials = named(
  "Credentials",
  t.Object({
    url: t.String(),
    psql: t.String({ description: "Command line for psql" }),
    host: t.String(),
    port: t.Integer(),
    database: t.String(),
    user: t.String(),
    password: t.String(),
  }),
);

export const runs = t.Array(
  named(
    "Run",
    t.Object({
      id: t.String(),
      kind: syncKind,
      syncs: t.Integer({
        description:
          "Number of similar syncs that this run combines: started_at is that of the first, completed_at and seen are of the last, " +
          "duration_ms is the mean, and the other counts are sums",
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
  ),
);

export const newRequest = named(
  "NewOperatorRequest",
  t.Object(
    {
      kind: t.Union([
        t.Literal("region"),
        t.Literal("writable"),
        t.Literal("shared_database"),
        t.Literal("other"),
      ]),
      database_id: t.Optional(
        t.String({ maxLength: 100, description: "For `writable`: the id of the database" }),
      ),
      region: t.Optional(t.String({ maxLength: 40, description: "For `region`: its code" })),
      message: t.Optional(t.String({ maxLength: 2000 })),
    },
    strict,
  ),
  { kind: "region", region: "eu-central-1", message: "Our data must stay in the EU" },
);

export const operatorRequest = named(
  "OperatorRequest",
  t.Object({
    id: t.String(),
    kind: t.String(),
    database_id: nullable(t.String()),
    region: nullable(t.String()),
    message: t.String(),
    state: t.Union([t.Literal("open"), t.Literal("approved"), t.Literal("denied")]),
    answer: t.String({ description: "The operator's answer" }),
    created_at: timestamp,
    decided_at: nullable(timestamp),
  }),
);

export const operatorRequests = t.Array(operatorRequest);

export const schemaChangesQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 1000, description: "Default: 100" })),
});

export const auditQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 1000, description: "Default: 100" })),
  before: t.Optional(t.String({ maxLength: 20, description: "Id of an entry: returns only older entries" })),
});

export const auditEntries = t.Array(
  named(
    "AuditEntry",
    t.Object({
      id: t.String(),
      at: timestamp,
      actor: t.Object(
        {
          kind: t.UnionEnum(["user", "token", "operator", "cli", "system"]),
          name: nullable(t.String()),
        },
        { description: "E-mail address of a member or name of a token; null for the operator" },
      ),
      action: t.String({ description: "For example `base.connected`" }),
      subject: nullable(t.String({ description: "Id of the changed object" })),
      details: t.Record(t.String(), t.Union([t.String(), t.Number(), t.Boolean(), t.Null()])),
    }),
  ),
);

const shapeName = named(
  "SchemaName",
  t.Object({
    source_name: t.String(),
    name: t.String({ description: "Name in SQL" }),
    source_type: t.Optional(t.String()),
    type: t.Optional(t.String({ description: "Type of the column" })),
  }),
);

export const schemaChanges = t.Array(
  named(
    "SchemaChange",
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
      table: t.String({
        description: "SQL name of the table after the change; if it was dropped, before the change",
      }),
      field: nullable(
        t.String({ description: "SQL name of the column; null for a change of the table itself" }),
      ),
      before: nullable(shapeName),
      after: nullable(shapeName),
    }),
  ),
);
