/** Schemas of a base, and of changes of its settings. */
import { t } from "elysia";
import { budget } from "./budgets";
import { apiKey, workspaceId } from "./connect";
import { named, nullable, oneOf, strict, timestamp, timestampOf } from "./parts";
import { selection } from "./selection";
import {
  indexes,
  indexesChange,
  mutedFields,
  mutedFieldsChange,
  ownNames,
  ownNamesChange,
  plainSettings,
} from "./settings";

export const syncKind = named(
  "SyncKind",
  oneOf(["first", "rebuild", "sweep", "rapid", "live"], {
    meanings: {
      rapid: "A cycle over all tables, which requests the modified records of each",
      live: "A batch of changes that Airtable's feed reported",
    },
  }),
);

export const idParams = t.Object({ id: t.String({ maxLength: 100, description: "Id of the base: bas_…" }) });

export const settingsChange = named(
  "BaseChange",
  t.Partial(
    t.Object({
      ...plainSettings,
      indexes: indexesChange,
      own_names: ownNamesChange,
      muted_fields: mutedFieldsChange,
      api_key: apiKey,
      workspace_id: workspaceId,
    }),
    { ...strict, minProperties: 1 },
  ),
  { turbo: true, indexes: [{ table: "project_tasks", column: "due_date" }] },
);

const live = named(
  "LiveFeed",
  t.Object(
    {
      state: oneOf(["making", "on", "refused", "failing"], {
        meanings: {
          refused: "There is no feed; the base is swept",
          failing: "The feed cannot be read at the moment; the base is swept",
        },
      }),
      reason: t.String({ description: "For `refused` and `failing`: why there is no feed" }),
      by: oneOf(["notification", "poll"], {
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
        timestampOf("Changes before this time may be missing until a full check completes"),
      ),
      off_since: nullable(timestampOf("Since when there is no feed, although live mode is on")),
      retry_at: nullable(timestampOf("When Airtable is asked again")),
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
    state: oneOf(["starting", "active", "paused", "needs_attention", "moving", "deleting"]),
    indicator: named(
      "Indicator",
      t.Object({
        color: oneOf(["green", "yellow", "red"]),
        reason: t.String(),
        since: nullable(timestamp),
        tables: t.Array(t.String(), { description: "Airtable's names of the tables that it concerns" }),
        next: t.String({ description: "What happens next, if `next_at` does not say it" }),
        next_at: nullable(timestampOf("When Basetide tries again")),
      }),
    ),
    settings: named(
      "Settings",
      t.Object({ ...plainSettings, indexes, own_names: ownNames, muted_fields: mutedFields }),
    ),
    selection,
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
        source_id: t.String(),
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
                records_error: t.Optional(
                  t.Integer({
                    description:
                      "The standard error of the estimate, in records; absent if it is the number of an earlier sync",
                  }),
                ),
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
    problems: t.Array(
      t.Object({
        kind: oneOf(["missing_table", "outdated_table", "settings"], {
          meanings: {
            missing_table: "A table of the source is not in the database",
            outdated_table: "A table still has its former columns",
            settings: "Changed settings are not applied",
          },
        }),
        table_id: nullable(t.String()),
        name: t.String({ description: "The table's name in the source" }),
        message: t.String({ description: "Why; empty if nothing has failed" }),
        since: timestamp,
        next_try_at: nullable(timestamp),
      }),
      { description: "What keeps the database from equaling the source although syncs complete" },
    ),
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
    failing_tables: t.Array(
      t.Object({
        table_id: t.String({ description: "Airtable's id of the table" }),
        name: t.String({ description: "Airtable's name of the table" }),
        code: t.String(),
        message: t.String({ description: "Names the table" }),
        since: timestamp,
        next_try_at: timestamp,
      }),
      {
        description:
          "Tables that cannot be read, or that cannot get their new columns (needs_attention: the rows stay up to date, and the message has the statement to run). Each is tried again by itself, after at most a minute; the other tables are synced as usual",
      },
    ),
    schema_error: nullable(
      t.Object(
        { code: t.String(), message: t.String(), since: timestamp },
        {
          description:
            "Why Airtable's schema of the base cannot be read, and since when. Rows of known tables are synced as usual",
        },
      ),
    ),
    issues: t.Array(
      named(
        "IssueGroup",
        t.Object({
          kind: oneOf(["value", "formula", "unreadable", "object"], {
            meanings: {
              value: "Values that do not fit their column: they are lost, or were changed",
              formula: "Errors that Airtable has in place of a value, such as #ERROR!",
              unreadable: "Parts of Airtable's answers that cannot be read",
              object:
                "An object of yours that a rebuild could not carry over; `value` contains the statements that create it",
            },
          }),
          table: t.String({ description: "Name in SQL" }),
          column: t.String({ description: "Name in SQL" }),
          table_id: nullable(t.String({ description: "Airtable's id" })),
          field_id: nullable(t.String({ description: "Airtable's id" })),
          reason: t.String(),
          count: t.Integer({ description: "Issues of this field, for this reason" }),
          record_id: t.String({ description: "One of them; empty if it is of no record" }),
          value: t.String({ description: "Its value in Airtable, as JSON" }),
        }),
      ),
      {
        description:
          "What _sync_issues contains, by field and reason: the 200 largest groups. Those of the fields in the setting muted_fields are included",
      },
    ),
    issue_count: t.Integer({ description: "All issues" }),
    open_issue_count: t.Integer({
      description: "Issues that need a person: without errors of formulas, and without those of muted fields",
    }),
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
