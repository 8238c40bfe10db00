/** Generated from the description of the management API by `bun run client`: do not edit. */

export interface paths {
  "/api/v1/platforms": {
    /** Platforms that can be replicated */
    get: {
      parameters: {  };
      responses: { 200: { content: { "application/json": (components["schemas"]["Platform"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/source-bases": {
    /** Bases that an API key has access to */
    post: {
      parameters: {  };
      requestBody: { content: { "application/json": components["schemas"]["KeyCheck"] } };
      responses: { 200: { content: { "application/json": (components["schemas"]["SourceBase"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/source-tables": {
    /** Tables, fields and views of a base before it is connected */
    post: {
      parameters: {  };
      requestBody: { content: { "application/json": components["schemas"]["SourceBaseKey"] } };
      responses: { 200: { content: { "application/json": (components["schemas"]["SelectableTable"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/destinations/check": {
    /** Check a database that you host */
    post: {
      parameters: {  };
      requestBody: { content: { "application/json": components["schemas"]["DestinationCheck"] } };
      responses: { 200: { content: { "application/json": components["schemas"]["DestinationChecks"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases": {
    /** The account's bases */
    get: {
      parameters: {  };
      responses: { 200: { content: { "application/json": (components["schemas"]["Base"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Connect a base and start syncing */
    post: {
      parameters: {  };
      requestBody: { content: { "application/json": components["schemas"]["NewBase"] } };
      responses: { 201: { content: { "application/json": components["schemas"]["Base"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}": {
    /** One base */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["Base"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Change settings, the workspace, or the API key */
    patch: {
      parameters: { path: { id: string } };
      requestBody: { content: { "application/json": components["schemas"]["BaseChange"] } };
      responses: { 200: { content: { "application/json": components["schemas"]["Base"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Delete a base and its synced data */
    delete: {
      parameters: { path: { id: string } };
      responses: { 204: { content?: never }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/sync": {
    /** Resync a base */
    post: {
      parameters: { path: { id: string } };
      responses: { 202: { content: { "application/json": components["schemas"]["Base"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/attachment-links/revoke": {
    /** Revoke all attachment links */
    post: {
      parameters: { path: { id: string } };
      responses: { 202: { content: { "application/json": components["schemas"]["Base"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/runs": {
    /** The latest syncs, newest first */
    get: {
      parameters: { path: { id: string }; query?: { limit?: number } };
      responses: { 200: { content: { "application/json": (components["schemas"]["Run"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/workspaces": {
    /** The account's workspaces and their usage this month */
    get: {
      parameters: {  };
      responses: { 200: { content: { "application/json": (components["schemas"]["Workspace"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Create a workspace */
    post: {
      parameters: {  };
      requestBody: { content: { "application/json": components["schemas"]["NewWorkspace"] } };
      responses: { 201: { content: { "application/json": components["schemas"]["Workspace"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/workspaces/{id}": {
    /** One workspace */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["Workspace"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Change its name, plan, calls or reserve */
    patch: {
      parameters: { path: { id: string } };
      requestBody: { content: { "application/json": components["schemas"]["WorkspaceChange"] } };
      responses: { 200: { content: { "application/json": components["schemas"]["Workspace"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Delete a workspace */
    delete: {
      parameters: { path: { id: string } };
      responses: { 204: { content?: never }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/calls": {
    /** Calls to Airtable by sync, clients and console */
    get: {
      parameters: { path: { id: string }; query?: { per?: "hour" | "day" } };
      responses: { 200: { content: { "application/json": components["schemas"]["BaseCalls"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/names": {
    /** Names in Airtable and in SQL */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["Names"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/old-names": {
    /** Old names that still work, and what uses them */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["OldNames"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/schema-changes": {
    /** Schema changes in Airtable, newest first */
    get: {
      parameters: { path: { id: string }; query?: { limit?: number; severity?: "additive" | "rename" | "breaking" } };
      responses: { 200: { content: { "application/json": (components["schemas"]["SchemaChange"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/selection": {
    /** What of the base is copied, and what could be */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["SelectionOfBase"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Choose what is copied */
    put: {
      parameters: { path: { id: string } };
      requestBody: { content: { "application/json": components["schemas"]["SelectionChange"] } };
      responses: { 200: { content: { "application/json": components["schemas"]["SelectionOfBase"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/dbt-sources": {
    /** The tables as dbt sources */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "text/yaml": string } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/er-diagram": {
    /** The tables and their links as a diagram */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "text/plain": string } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/types": {
    /** The tables as types and schemas of a programming language */
    get: {
      parameters: { path: { id: string }; query?: { lang?: "ts" | "zod" | "kysely" | "drizzle" | "prisma" | "pydantic" | "sqlalchemy" | "jsonschema" | "postgrest" | "postgraphile" | "hasura" | "dbt" } };
      responses: { 200: { content: { "application/json": components["schemas"]["TypesFiles"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/types/{lang}/{file}": {
    /** One file of types */
    get: {
      parameters: { path: { id: string; lang: string; file: string } };
      responses: { 200: { content: { "text/plain": string } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/credentials": {
    /** How to connect with SQL */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["Credentials"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/credentials/rotate": {
    /** Set a new password. The old password no longer works */
    post: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["Credentials"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/credentials/reading-url": {
    /** Set the URL with which members read a database that you host */
    put: {
      parameters: { path: { id: string } };
      requestBody: { content: { "application/json": components["schemas"]["ReadingUrl"] } };
      responses: { 204: { content?: never }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Remove the reading URL */
    delete: {
      parameters: { path: { id: string } };
      responses: { 204: { content?: never }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/sql-users": {
    /** SQL users of the base's database */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": (components["schemas"]["SqlUser"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Create a SQL user */
    post: {
      parameters: { path: { id: string } };
      requestBody: { content: { "application/json": components["schemas"]["NewSqlUser"] } };
      responses: { 201: { content: { "application/json": components["schemas"]["CreatedSqlUser"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/sql-users/{user}/credentials": {
    /** How to connect as a SQL user */
    get: {
      parameters: { path: { id: string; user: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["Credentials"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/sql-users/{user}/rotate": {
    /** Set a new password of a SQL user. The old password no longer works */
    post: {
      parameters: { path: { id: string; user: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["Credentials"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/bases/{id}/sql-users/{user}": {
    /** Revoke a SQL user */
    delete: {
      parameters: { path: { id: string; user: string } };
      responses: { 204: { content?: never }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/requests": {
    /** Requests to the operator, open ones first */
    get: {
      parameters: {  };
      responses: { 200: { content: { "application/json": (components["schemas"]["OperatorRequest"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Ask the operator: region, writable database, several bases in one database */
    post: {
      parameters: {  };
      requestBody: { content: { "application/json": components["schemas"]["NewOperatorRequest"] } };
      responses: { 201: { content: { "application/json": components["schemas"]["OperatorRequest"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/audit": {
    /** Audit log, newest first */
    get: {
      parameters: { query?: { limit?: number; before?: string } };
      responses: { 200: { content: { "application/json": (components["schemas"]["AuditEntry"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/members": {
    /** Members of the account, the owner first */
    get: {
      parameters: {  };
      responses: { 200: { content: { "application/json": (components["schemas"]["Member"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/members/{id}": {
    /** Change a member's role */
    patch: {
      parameters: { path: { id: string } };
      requestBody: { content: { "application/json": components["schemas"]["RoleChange"] } };
      responses: { 200: { content: { "application/json": components["schemas"]["Member"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Remove a member, and optionally revoke shared credentials */
    delete: {
      parameters: { path: { id: string } };
      requestBody: { content: { "application/json": components["schemas"]["RemovalOptions"] | null } };
      responses: { 200: { content: { "application/json": components["schemas"]["MemberRemoval"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/alerts": {
    /** Get alert preferences, webhooks and the latest messages */
    get: {
      parameters: {  };
      responses: { 200: { content: { "application/json": components["schemas"]["Alerts"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Set which alerts members get by e-mail */
    patch: {
      parameters: {  };
      requestBody: { content: { "application/json": components["schemas"]["AlertsChange"] } };
      responses: { 200: { content: { "application/json": components["schemas"]["Alerts"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/alerts/webhooks": {
    /** The account's webhooks */
    get: {
      parameters: {  };
      responses: { 200: { content: { "application/json": (components["schemas"]["Webhook"])[] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Add a webhook */
    post: {
      parameters: {  };
      requestBody: { content: { "application/json": components["schemas"]["NewWebhook"] } };
      responses: { 201: { content: { "application/json": components["schemas"]["NewWebhookSecret"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/alerts/webhooks/{id}": {
    /** One webhook */
    get: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["Webhook"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Change a webhook */
    patch: {
      parameters: { path: { id: string } };
      requestBody: { content: { "application/json": components["schemas"]["WebhookChange"] } };
      responses: { 200: { content: { "application/json": components["schemas"]["Webhook"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
    /** Delete a webhook */
    delete: {
      parameters: { path: { id: string } };
      responses: { 204: { content?: never }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
  "/api/v1/alerts/webhooks/{id}/test": {
    /** Send a test message and report whether it was delivered */
    post: {
      parameters: { path: { id: string } };
      responses: { 200: { content: { "application/json": components["schemas"]["TestDelivery"] } }; default: { content: { "application/json": components["schemas"]["ApiError"] } } };
    };
  };
}

export interface components {
  schemas: {
    AlertKind: "red" | "recovered" | "needs_attention" | "call_budget" | "new_table" | "breaking_change" | "schema_changed";
    Alerts: {
      members: ({
        user_id: string;
        email: string;
        /** Kinds of alerts that this member gets by e-mail */
        kinds: (components["schemas"]["AlertKind"])[];
      })[];
      webhooks: (components["schemas"]["Webhook"])[];
      /** The latest 50, newest first */
      messages: ({
        id: string;
        at: string;
        channel: "mail" | "webhook";
        to: string;
        webhook_id: string | null;
        subject: string;
        /** `given_up`: All delivery attempts failed. `dropped`: The recipient or the subject no longer exists */
        state: "waiting" | "sent" | "given_up" | "dropped";
        attempts: number;
        error: string | null;
        ended_at: string | null;
      })[];
    };
    AlertsChange: {
      members: ({
        user_id: string;
        kinds: (components["schemas"]["AlertKind"])[];
      })[];
    };
    ApiError: {
      error: {
        /** Stable name of the error */
        code: "source_key_refused" | "source_forbidden" | "source_not_found" | "source_rate_limited" | "source_billing_limit" | "source_unavailable" | "source_timeout" | "source_bad_answer" | "source_iterator_lost" | "source_schema_changed" | "source_rejected" | "view_gone" | "lease_lost" | "shape_changed" | "sync_stopped" | "sync_crashed" | "replica_unavailable" | "replica_busy" | "replica_refused" | "destination_invalid" | "query_failed" | "query_stopped" | "control_unavailable" | "secret_unreadable" | "quota_timeout" | "budget_spent" | "unauthorized" | "invalid_credentials" | "forbidden" | "not_found" | "rate_limited" | "invalid_request" | "unsupported_media_type" | "method_not_allowed" | "malformed_request" | "body_late" | "busy" | "already_exists" | "conflict" | "config_invalid" | "port_taken" | "postgres_failed" | "internal";
        /** What happened and what to do, for people */
        message: string;
        /** Identifies the call in the log of the service */
        request_id: string;
      };
    };
    AuditEntry: {
      id: string;
      at: string;
      /** E-mail address of a member or name of a token; null for the operator */
      actor: {
        kind: "user" | "token" | "operator" | "cli" | "system";
        name: string | null;
      };
      /** For example `base.connected` */
      action: string;
      /** Id of the changed object */
      subject: string | null;
      details: Record<string, string | number | boolean | null>;
    };
    Base: {
      id: string;
      platform: string;
      base_id: string;
      name: string;
      state: "starting" | "active" | "paused" | "needs_attention" | "moving" | "deleting";
      indicator: components["schemas"]["Indicator"];
      settings: components["schemas"]["Settings"];
      selection: components["schemas"]["Selection"];
      database: components["schemas"]["Database"];
      tables: ({
        name: string;
        source_name: string;
        source_id?: string;
        records: number;
      })[];
      /** The last completed sync, and the progress of a first sync or a rebuild */
      sync: {
        kind: components["schemas"]["SyncKind"] | null;
        started_at: string | null;
        completed_at: string | null;
        duration_ms: number | null;
        lag_ms: number | null;
        progress: {
          kind: components["schemas"]["SyncKind"];
          started_at: string;
          /** Pages of records that were read */
          pages?: number;
          /** Calls of this sync; absent if other work makes calls at the same time */
          calls?: number;
          tables: ({
            name: string;
            source_name: string;
            records_done: number;
            records_estimate: number | null;
            /** The standard error of the estimate, in records; absent if it is the number of an earlier sync */
            records_error?: number;
            /** The table can be queried */
            done: boolean;
            /** The table has been read, and waits for transactions that lock the live table */
            waiting?: boolean;
          })[];
        } | null;
      };
      /** The last time that every record was read; in rapid mode, deletes and computed fields are as of this time */
      sweep: {
        started_at: string;
        completed_at: string;
      } | null;
      live: components["schemas"]["LiveFeed"] | null;
      budget: components["schemas"]["Budget"] | null;
      /** What keeps the database from equaling the source although syncs complete */
      problems: ({
        /** `missing_table`: A table of the source is not in the database. `outdated_table`: A table still has its former columns. `settings`: Changed settings are not applied */
        kind: "missing_table" | "outdated_table" | "settings";
        table_id: string | null;
        /** The table's name in the source */
        name: string;
        /** Why; empty if nothing has failed */
        message: string;
        since: string;
        next_try_at: string | null;
      })[];
      /** Why syncs fail, since when, and until when if known */
      error: {
        code: string;
        message: string;
        since: string;
        until: string | null;
      } | null;
      /** Tables that cannot be read. Each is tried again by itself, after at most a minute; the other tables are synced as usual */
      failing_tables: ({
        /** Airtable's id of the table */
        table_id: string;
        /** Airtable's name of the table */
        name: string;
        code: string;
        /** Names the table */
        message: string;
        since: string;
        next_try_at: string;
      })[];
      /** Why Airtable's schema of the base cannot be read, and since when. Rows of known tables are synced as usual */
      schema_error: {
        code: string;
        message: string;
        since: string;
      } | null;
      /** What _sync_issues contains, by field and reason: the 200 largest groups. Those of the fields in the setting muted_fields are included */
      issues: (components["schemas"]["IssueGroup"])[];
      /** All issues */
      issue_count: number;
      /** Issues that need a person: without errors of formulas, and without those of muted fields */
      open_issue_count: number;
      /** Records written through the proxy that the replica does not show yet */
      repairs: number;
    };
    BaseCalls: {
      per: "hour" | "day";
      /** The oldest first */
      buckets: ({
        from: string;
        sync: number;
        /** By your applications through the proxy */
        client: number;
        /** For links to attachments, and checks of keys */
        console: number;
      })[];
      /** The calls of `client` in the whole time, the most first */
      clients: ({
        /** `own`: the key that the base is synced with; `others`: all that are not listed */
        kind: "own" | "key" | "others";
        /** The first letters of the key */
        key: string | null;
        calls: number;
      })[];
    };
    BaseChange: {
      /** Airtable reports changes, if the key may manage webhooks. `rapid` takes precedence. Default: true. */
      live?: boolean;
      /** Sync uses up to 5 requests a second, all that Airtable allows for a base, instead of 3. Full checks of live mode always use one. Default: false. */
      turbo?: boolean;
      /** Columns of linked records are `text` with the first link instead of `text[]`. Rebuilds affected tables. Default: false. */
      linked_records_as_text?: boolean;
      /** Lookup columns are `text` with the first value instead of `text[]`. Rebuilds affected tables. Default: false. */
      lookups_as_text?: boolean;
      /** Creates and updates arrive first; deletes and computed fields take longer. Replaces `live`. Default: false. */
      rapid?: boolean;
      /** Tables and columns keep their names when they are renamed in Airtable; only their comments change. Default: false. */
      pinned_names?: boolean;
      /** Number of days that the old name of a renamed table or column still works. 0: it stops working at once. Default: 7. */
      alias_days?: number;
      /** Creates a view `table__column` for each array of links, with one row per link. Default: false. */
      link_views?: boolean;
      /** Records changes of records in the table `_sync_history`. Default: false. */
      history?: boolean;
      /** Number of days that a change stays in `_sync_history`. Default: 30. */
      history_days?: number;
      /** Sends changes of records to sessions that listen to the channel `basetide`. Default: false. */
      notify?: boolean;
      /** Creates a view `table__column` for each column of attachments, with one row per file: name, type, size, dimensions and URL. Reads tables with attachments again. Default: false. */
      attachment_views?: boolean;
      /** Stores attachments as signed links of the console, which redirect to current URLs of Airtable. Affected rows are read and written again. Default: false. */
      own_attachment_urls?: boolean;
      /** The proxy answers reads with the base's own key from Postgres if the answer is exact; a response header says who answered. Default: false. */
      replica_reads?: boolean;
      /** The proxy sends creates and updates of single records to Airtable in calls of up to ten, and answers each client as if its call had been sent alone. Default: false. */
      coalesce_writes?: boolean;
      /** Stops the running sync and all requests to Airtable. The database stays readable. Default: false. */
      paused?: boolean;
      /** Columns to index, by their SQL names. Columns that are not listed lose their index */
      indexes?: ({
        table: string;
        column: string;
        /** default: a B-tree, or GIN where the column is an array; trigram: for like '%…%', with pg_trgm */
        kind?: "default" | "trigram";
      })[];
      /** All names of your own. Tables and columns that are not listed get automatic names */
      own_names?: ({
        /** Airtable's id of the table */
        table_id: string;
        /** snake_case, and none of Postgres' reserved words */
        name: string;
        /** Airtable's id of the field; null for the name of the table */
        field_id?: string | null;
      })[];
      /** All fields whose issues do not count. Issues of fields that are not listed count again */
      muted_fields?: ({
        /** Airtable's id of the table */
        table_id: string;
        /** Airtable's id of the field */
        field_id: string;
      })[];
      /** Airtable API key */
      api_key?: string;
      /** Id of the workspace whose cap includes the base's calls: wsp_… */
      workspace_id?: string | null;
    };
    Budget: {
      workspace_id: string;
      plan: components["schemas"]["Plan"];
      /** Null means no cap */
      calls_per_month: number | null;
      /** Calls of the month that are reserved for clients */
      reserve: number;
      /** Calls of the current month */
      used: {
        /** Month in UTC, for example 2026-11 */
        month: string;
        sync: number;
        client: number;
        /** Those of `client` that the console made */
        console: number;
        /** Calls of sync by purpose: payloads, records, sweep, schema, freshness, webhooks */
        by_kind: Record<string, number>;
      };
      /** Expected calls if the next days are like those of the last week; null without a reliable forecast */
      forecast: {
        /** Expected calls of the month at its end */
        calls: number | null;
        /** Expected calls of the next whole day (UTC) */
        next_day: number | null;
        at: string;
        ends_inside: boolean | null;
        missing: "history" | "regularity" | null;
      };
      /** `spent`: Sync has used its share; clients have their reserve. `over`: The cap itself is exceeded */
      state: "no_cap" | "inside" | "spent" | "over";
      /** Calls that sync may still make this month */
      left: number | null;
      /** Rate at which each syncing base may use them */
      rate_per_hour: number | null;
      /** Airtable answers only two calls a second, and Basetide sends no more, at least until then */
      slowed: {
        until: string;
        /** False if inferred from Airtable's refusals */
        is_certain: boolean;
      } | null;
      /** Sync has no calls left until the end of the month; clients can keep calling */
      spent: boolean;
    };
    CreatedSqlUser: {
      sql_user: components["schemas"]["SqlUser"];
      credentials: components["schemas"]["Credentials"];
    };
    Credentials: {
      url: string;
      /** Command line for psql */
      psql: string;
      host: string;
      port: number;
      database: string;
      user: string;
      password: string;
    };
    Database: {
      id: string;
      name: string;
      schema: string;
      host: string;
      port: number;
    };
    Destination: {
      kind: "new";
      /** Of the cluster; default: the account's */
      region?: string;
    } | {
      kind: "existing";
      database_id: string;
      schema: string;
    } | {
      kind: "external";
      url: string;
      schema?: string;
      /** Use the URL although its role has more rights than Basetide needs, such as a superuser's. Otherwise, such a URL is refused */
      accept_privileges?: boolean;
    };
    DestinationCheck: {
      url: string;
      schema?: string;
      /** Use the URL although its role has more rights than Basetide needs, such as a superuser's. Otherwise, such a URL is refused */
      accept_privileges?: boolean;
    };
    DestinationChecks: {
      /** Whether no check found a problem */
      is_usable: boolean;
      checks: ({
        /** address, connection, pooler, encryption, latency, rights or schema */
        check: string;
        status: "ok" | "warning" | "problem";
        message: string;
        /** SQL to run on the server, or the change to make in the URL */
        remedy: string | null;
      })[];
    };
    Indicator: {
      color: "green" | "yellow" | "red";
      reason: string;
      since: string | null;
      /** Airtable's names of the tables that it concerns */
      tables: (string)[];
      /** What happens next, if `next_at` does not say it */
      next: string;
      /** When Basetide tries again */
      next_at: string | null;
    };
    IssueGroup: {
      /** `value`: Values that do not fit their column: they are lost, or were changed. `formula`: Errors that Airtable has in place of a value, such as #ERROR!. `unreadable`: Parts of Airtable's answers that cannot be read. `object`: An object of yours that a rebuild could not carry over; `value` contains the statements that create it */
      kind: "value" | "formula" | "unreadable" | "object";
      /** Name in SQL */
      table: string;
      /** Name in SQL */
      column: string;
      /** Airtable's id */
      table_id: string | null;
      /** Airtable's id */
      field_id: string | null;
      reason: string;
      /** Issues of this field, for this reason */
      count: number;
      /** One of them; empty if it is of no record */
      record_id: string;
      /** Its value in Airtable, as JSON */
      value: string;
    };
    KeyCheck: {
      platform: string;
      /** Airtable API key */
      api_key: string;
    };
    LiveFeed: {
      /** `refused`: There is no feed; the base is swept. `failing`: The feed cannot be read at the moment; the base is swept */
      state: "making" | "on" | "refused" | "failing";
      /** For `refused` and `failing`: why there is no feed */
      reason: string;
      /** Whether Airtable sends notifications of new changes, or Basetide polls */
      by: "notification" | "poll";
      last_change_at: string | null;
      read_at: string | null;
      due_at: string | null;
      /** Records that are known to have changed and have not been read yet */
      waiting: number;
      waiting_since: string | null;
      /** Changed records that the feed did not report, and a full check found */
      missed: number;
      missed_at: string | null;
      compared_at: string | null;
      drifted_since: string | null;
      /** Changes before this time may be missing until a full check completes */
      gap_since: string | null;
      /** Since when there is no feed, although live mode is on */
      off_since: string | null;
      /** When Airtable is asked again */
      retry_at: string | null;
      expires_at: string | null;
    };
    LostName: {
      table_id: string;
      /** null: it is the old name of the table */
      field_id: string | null;
      /** The old name */
      name: string;
      /** The table's current name */
      table: string;
      /** The column's current name */
      column: string | null;
      renamed_at: string;
      expires_at: string;
      /** Why the old name does not work */
      reason: string;
    };
    Member: {
      user_id: string;
      email: string;
      role: "viewer" | "editor" | "owner";
      since: string;
    };
    MemberRemoval: {
      email: string;
      tokens_revoked: number;
      databases: ({
        id: string;
        name: string;
        /** Why it failed; null if it succeeded */
        error: string | null;
      })[];
      attachment_links: ({
        id: string;
        name: string;
        /** Why it failed; null if it succeeded */
        error: string | null;
      })[];
      remains: (string)[];
    };
    Names: {
      tables: ({
        table_id: string;
        /** Name in Airtable */
        source_name: string;
        /** Name in SQL */
        name: string;
        /** Chosen with own_names */
        is_own: boolean;
        columns: ({
          field_id: string;
          /** Name in Airtable */
          source_name: string;
          /** Name in SQL */
          name: string;
          /** Chosen with own_names */
          is_own: boolean;
        })[];
      })[];
    };
    NewBase: {
      platform: string;
      /** Airtable API key */
      api_key: string;
      base_id: string;
      destination?: components["schemas"]["Destination"];
      settings?: {
        /** Airtable reports changes, if the key may manage webhooks. `rapid` takes precedence. Default: true. */
        live?: boolean;
        /** Sync uses up to 5 requests a second, all that Airtable allows for a base, instead of 3. Full checks of live mode always use one. Default: false. */
        turbo?: boolean;
        /** Columns of linked records are `text` with the first link instead of `text[]`. Rebuilds affected tables. Default: false. */
        linked_records_as_text?: boolean;
        /** Lookup columns are `text` with the first value instead of `text[]`. Rebuilds affected tables. Default: false. */
        lookups_as_text?: boolean;
        /** Creates and updates arrive first; deletes and computed fields take longer. Replaces `live`. Default: false. */
        rapid?: boolean;
        /** Tables and columns keep their names when they are renamed in Airtable; only their comments change. Default: false. */
        pinned_names?: boolean;
        /** Number of days that the old name of a renamed table or column still works. 0: it stops working at once. Default: 7. */
        alias_days?: number;
        /** Creates a view `table__column` for each array of links, with one row per link. Default: false. */
        link_views?: boolean;
        /** Records changes of records in the table `_sync_history`. Default: false. */
        history?: boolean;
        /** Number of days that a change stays in `_sync_history`. Default: 30. */
        history_days?: number;
        /** Sends changes of records to sessions that listen to the channel `basetide`. Default: false. */
        notify?: boolean;
        /** Creates a view `table__column` for each column of attachments, with one row per file: name, type, size, dimensions and URL. Reads tables with attachments again. Default: false. */
        attachment_views?: boolean;
        /** Stores attachments as signed links of the console, which redirect to current URLs of Airtable. Affected rows are read and written again. Default: false. */
        own_attachment_urls?: boolean;
        /** The proxy answers reads with the base's own key from Postgres if the answer is exact; a response header says who answered. Default: false. */
        replica_reads?: boolean;
        /** The proxy sends creates and updates of single records to Airtable in calls of up to ten, and answers each client as if its call had been sent alone. Default: false. */
        coalesce_writes?: boolean;
        /** Stops the running sync and all requests to Airtable. The database stays readable. Default: false. */
        paused?: boolean;
      };
      selection?: components["schemas"]["Selection"];
      /** Id of the workspace whose cap includes the base's calls: wsp_… */
      workspace_id?: string | null;
    };
    NewOperatorRequest: {
      kind: "region" | "writable" | "shared_database" | "other";
      /** For `writable`: the id of the database */
      database_id?: string;
      /** For `region`: its code */
      region?: string;
      message?: string;
    };
    NewSqlUser: {
      /** What or who it is for; unique in the database, ignoring case */
      name: string;
    };
    NewWebhook: {
      name?: string;
      /** https URL on the public internet; it is not shown again */
      url: string;
      form?: components["schemas"]["WebhookForm"];
      kinds?: (components["schemas"]["AlertKind"])[];
    };
    NewWebhookSecret: {
      id: string;
      name: string;
      form: components["schemas"]["WebhookForm"];
      /** Host of the webhook's URL; the URL itself is not shown */
      host: string;
      kinds: (components["schemas"]["AlertKind"])[];
      on: boolean;
      created_at: string;
      delivered_at: string | null;
      failing_since: string | null;
      /** Why the last delivery failed */
      error: string | null;
      /** Key that signs the messages; shown only once */
      secret: string;
    };
    NewWorkspace: {
      name: string;
      plan: components["schemas"]["Plan"];
      /** Only with the plan `custom`; null means no cap */
      calls_per_month?: number | null;
      /** Default: a fifth of the calls */
      reserve?: number;
    };
    OldName: {
      table_id: string;
      /** null: it is the old name of the table */
      field_id: string | null;
      /** The old name */
      name: string;
      /** The table's current name */
      table: string;
      /** The column's current name */
      column: string | null;
      renamed_at: string;
      expires_at: string;
    };
    OldNames: {
      old_names: (components["schemas"]["OldName"])[];
      lost_names: (components["schemas"]["LostName"])[];
      uses: ({
        kind: "saved query" | "view" | "function" | "trigger" | "statement";
        /** Empty for a statement */
        name: string;
        /** The beginning of its SQL */
        text: string;
        /** Of a statement, since the statistics were reset */
        calls: number | null;
        old_names: ({
          table_id: string;
          field_id: string | null;
          name: string;
        })[];
      })[];
      /** The server has pg_stat_statements, and Basetide may read it: all statements that use old names are listed */
      knows_statements: boolean;
    };
    OperatorRequest: {
      id: string;
      kind: string;
      database_id: string | null;
      region: string | null;
      message: string;
      state: "open" | "approved" | "denied";
      /** The operator's answer */
      answer: string;
      created_at: string;
      decided_at: string | null;
    };
    Plan: "business" | "team" | "free" | "custom";
    Platform: {
      id: string;
      name: string;
      key_help_url: string;
    };
    ReadingUrl: {
      url: string;
    };
    RemovalOptions: {
      /** Rotate the passwords of the account's hosted databases and their SQL users; open connections are closed */
      rotate_credentials?: boolean;
      /** Revoke all attachment links of all bases */
      revoke_attachment_links?: boolean;
      /** Revoke all API tokens of the account, including the one in use */
      revoke_tokens?: boolean;
    };
    RoleChange: {
      role: "viewer" | "editor";
    };
    Run: {
      id: string;
      kind: components["schemas"]["SyncKind"];
      /** Number of similar syncs that this run combines: started_at is that of the first, completed_at and seen are of the last, duration_ms is the mean, and the other counts are sums */
      syncs: number;
      started_at: string;
      completed_at: string | null;
      duration_ms: number | null;
      longest_ms: number | null;
      seen: number;
      inserted: number;
      updated: number;
      deleted: number;
      requests: number;
      wait_ms: number;
      error: {
        code: string;
        message: string;
      } | null;
    };
    SchemaChange: {
      id: string;
      seen_at: string;
      kind: "table_added" | "table_dropped" | "table_renamed" | "table_rebuilt" | "field_added" | "field_dropped" | "field_renamed" | "field_retyped" | "table_waiting";
      /** What it means for SQL. additive: what worked still works; rename: a table or a column has another name, and the old one is an alias for some days; breaking: a table or a column is gone or has another type */
      severity: "additive" | "rename" | "breaking";
      /** SQL name of the table after the change; if it was dropped, before the change; for `table_waiting`, its name in Airtable */
      table: string;
      /** SQL name of the column; null for a change of the table itself */
      field: string | null;
      before: components["schemas"]["SchemaName"] | null;
      after: components["schemas"]["SchemaName"] | null;
    };
    SchemaName: {
      source_name: string;
      /** Name in SQL */
      name: string;
      source_type?: string;
      /** Type of the column */
      type?: string;
    };
    SelectableTable: {
      table_id: string;
      name: string;
      fields: ({
        field_id: string;
        name: string;
        /** As Airtable calls it */
        type: string;
        /** It can be hashed, but not omitted */
        is_primary: boolean;
        may_be_hashed: boolean;
      })[];
      views: ({
        view_id: string;
        name: string;
      })[];
    };
    Selection: {
      /** What happens to tables that are not listed, such as new ones. `ask`: Not copied; the console asks, and `unanswered` lists them */
      new_tables: "copy" | "ask" | "ignore";
      tables: ({
        table_id: string;
        copied: boolean;
        /** Only the records in this view are copied; null: all records */
        view_id?: string | null;
        /** Ids of fields that are not copied */
        omitted_fields?: (string)[];
        /** Ids of fields that are copied as a keyed hash */
        hashed_fields?: (string)[];
      })[];
    };
    SelectionChange: {
      /** What happens to tables that are not listed, such as new ones. `ask`: Not copied; the console asks, and `unanswered` lists them */
      new_tables: "copy" | "ask" | "ignore";
      tables: ({
        table_id: string;
        copied: boolean;
        /** Only the records in this view are copied; null: all records */
        view_id?: string | null;
        /** Ids of fields that are not copied */
        omitted_fields?: (string)[];
        /** Ids of fields that are copied as a keyed hash */
        hashed_fields?: (string)[];
      })[];
    };
    SelectionOfBase: {
      selection: components["schemas"]["Selection"];
      /** New tables in Airtable that wait for a decision, with `new_tables` = `ask` */
      unanswered: ({
        table_id: string;
        name: string;
      })[];
      /** What Airtable has now */
      available: (components["schemas"]["SelectableTable"])[];
    };
    Settings: {
      /** Airtable reports changes, if the key may manage webhooks. `rapid` takes precedence. Default: true. */
      live: boolean;
      /** Sync uses up to 5 requests a second, all that Airtable allows for a base, instead of 3. Full checks of live mode always use one. Default: false. */
      turbo: boolean;
      /** Columns of linked records are `text` with the first link instead of `text[]`. Rebuilds affected tables. Default: false. */
      linked_records_as_text: boolean;
      /** Lookup columns are `text` with the first value instead of `text[]`. Rebuilds affected tables. Default: false. */
      lookups_as_text: boolean;
      /** Creates and updates arrive first; deletes and computed fields take longer. Replaces `live`. Default: false. */
      rapid: boolean;
      /** Tables and columns keep their names when they are renamed in Airtable; only their comments change. Default: false. */
      pinned_names: boolean;
      /** Number of days that the old name of a renamed table or column still works. 0: it stops working at once. Default: 7. */
      alias_days: number;
      /** Creates a view `table__column` for each array of links, with one row per link. Default: false. */
      link_views: boolean;
      /** Records changes of records in the table `_sync_history`. Default: false. */
      history: boolean;
      /** Number of days that a change stays in `_sync_history`. Default: 30. */
      history_days: number;
      /** Sends changes of records to sessions that listen to the channel `basetide`. Default: false. */
      notify: boolean;
      /** Creates a view `table__column` for each column of attachments, with one row per file: name, type, size, dimensions and URL. Reads tables with attachments again. Default: false. */
      attachment_views: boolean;
      /** Stores attachments as signed links of the console, which redirect to current URLs of Airtable. Affected rows are read and written again. Default: false. */
      own_attachment_urls: boolean;
      /** The proxy answers reads with the base's own key from Postgres if the answer is exact; a response header says who answered. Default: false. */
      replica_reads: boolean;
      /** The proxy sends creates and updates of single records to Airtable in calls of up to ten, and answers each client as if its call had been sent alone. Default: false. */
      coalesce_writes: boolean;
      /** Stops the running sync and all requests to Airtable. The database stays readable. Default: false. */
      paused: boolean;
      /** Columns with an index, which survives renames and rebuilds. Available after the first sync. */
      indexes: ({
        table: string;
        column: string;
        /** default: a B-tree, or GIN where the column is an array; trigram: for like '%…%', with pg_trgm */
        kind: "default" | "trigram";
      })[];
      /** Names of your own for tables and columns, by Airtable's ids. They stay until you change them. Available after the first sync. */
      own_names: ({
        /** Airtable's id of the table */
        table_id: string;
        /** snake_case, and none of Postgres' reserved words */
        name: string;
        /** Airtable's id of the field; null for the name of the table */
        field_id: string | null;
      })[];
      /** Fields, by Airtable's ids, whose issues do not count, and are listed apart. They stay in `_sync_issues`. Available after the first sync. */
      muted_fields: ({
        /** Airtable's id of the table */
        table_id: string;
        /** Airtable's id of the field */
        field_id: string;
      })[];
    };
    SourceBase: {
      id: string;
      name: string;
      permission: string;
    };
    SourceBaseKey: {
      platform: string;
      /** Airtable API key */
      api_key: string;
      base_id: string;
    };
    SqlUser: {
      id: string;
      name: string;
      /** The user of its credentials */
      user: string;
      /** E-mail address of the user, or name of the token or operator, who created it */
      created_by: string;
      created_at: string;
      /** When it was last connected, to the minute; a session of less than three seconds may be missed */
      last_seen_at: string | null;
    };
    SyncKind: "first" | "rebuild" | "sweep" | "rapid" | "live";
    TestDelivery: {
      ok: boolean;
      /** Why the delivery failed */
      error: string | null;
    };
    TypesFiles: {
      lang: string;
      files: ({
        /** A name for the file */
        path: string;
        text: string;
      })[];
    };
    Webhook: {
      id: string;
      name: string;
      form: components["schemas"]["WebhookForm"];
      /** Host of the webhook's URL; the URL itself is not shown */
      host: string;
      kinds: (components["schemas"]["AlertKind"])[];
      on: boolean;
      created_at: string;
      delivered_at: string | null;
      failing_since: string | null;
      /** Why the last delivery failed */
      error: string | null;
    };
    WebhookChange: {
      name?: string;
      /** https URL on the public internet; it is not shown again */
      url?: string;
      form?: components["schemas"]["WebhookForm"];
      kinds?: (components["schemas"]["AlertKind"])[];
      on?: boolean;
    };
    WebhookForm: "json" | "slack";
    Workspace: {
      id: string;
      name: string;
      plan: components["schemas"]["Plan"];
      /** Null means no cap */
      calls_per_month: number | null;
      /** Calls of the month that are reserved for clients */
      reserve: number;
      /** Ids of the bases */
      bases: (string)[];
      /** Calls of the current month */
      used: {
        /** Month in UTC, for example 2026-11 */
        month: string;
        sync: number;
        client: number;
        /** Those of `client` that the console made */
        console: number;
        /** Calls of sync by purpose: payloads, records, sweep, schema, freshness, webhooks */
        by_kind: Record<string, number>;
      };
      /** Expected calls if the next days are like those of the last week; null without a reliable forecast */
      forecast: {
        /** Expected calls of the month at its end */
        calls: number | null;
        /** Expected calls of the next whole day (UTC) */
        next_day: number | null;
        at: string;
        ends_inside: boolean | null;
        missing: "history" | "regularity" | null;
      };
      /** `spent`: Sync has used its share; clients have their reserve. `over`: The cap itself is exceeded */
      state: "no_cap" | "inside" | "spent" | "over";
      /** Calls that sync may still make this month */
      left: number | null;
      /** Rate at which each syncing base may use them */
      rate_per_hour: number | null;
      /** Airtable answers only two calls a second, and Basetide sends no more, at least until then */
      slowed: {
        until: string;
        /** False if inferred from Airtable's refusals */
        is_certain: boolean;
      } | null;
      created_at: string;
    };
    WorkspaceChange: {
      name?: string;
      plan?: components["schemas"]["Plan"];
      /** Only with the plan `custom`; null means no cap */
      calls_per_month?: number | null;
      /** Default: a fifth of the calls */
      reserve?: number;
    };
  };
}
