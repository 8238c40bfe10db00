/** Schemas of what has happened: runs of a base, changes of its schema, and the audit log. */
import { t } from "elysia";
import { severities } from "../../../core/replica";
import { syncKind } from "./base";
import { named, nullable, oneOf, timestamp } from "./parts";

export const runsQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 1000, description: "Default: 50" })),
});

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

export const schemaChangesQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 1000, description: "Default: 100" })),
  severity: t.Optional(oneOf(severities, { description: "Returns only the changes of this severity" })),
});

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
      kind: oneOf([
        "table_added",
        "table_dropped",
        "table_renamed",
        "table_rebuilt",
        "field_added",
        "field_dropped",
        "field_renamed",
        "field_retyped",
        "table_waiting",
      ]),
      severity: oneOf(severities, {
        description:
          "What it means for SQL. additive: what worked still works; rename: a table or a column has another name, and the old one is an alias for some days; breaking: a table or a column is gone or has another type",
      }),
      table: t.String({
        description:
          "SQL name of the table after the change; if it was dropped, before the change; for `table_waiting`, its name in Airtable",
      }),
      field: nullable(
        t.String({ description: "SQL name of the column; null for a change of the table itself" }),
      ),
      before: nullable(shapeName),
      after: nullable(shapeName),
    }),
  ),
);

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
          kind: oneOf(["user", "token", "operator", "cli", "system"]),
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
