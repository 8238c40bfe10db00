/** Generated from the description of the management API by `bun run client`: do not edit. */

export const apiFacts = {
  "defaultPlatform": "airtable",
  "settings": {
    "live": {
      "type": "boolean"
    },
    "turbo": {
      "type": "boolean"
    },
    "linked_records_as_text": {
      "type": "boolean"
    },
    "lookups_as_text": {
      "type": "boolean"
    },
    "rapid": {
      "type": "boolean"
    },
    "pinned_names": {
      "type": "boolean"
    },
    "alias_days": {
      "type": "integer",
      "minimum": 0,
      "maximum": 365
    },
    "link_views": {
      "type": "boolean"
    },
    "history": {
      "type": "boolean"
    },
    "history_days": {
      "type": "integer",
      "minimum": 1,
      "maximum": 3650
    },
    "notify": {
      "type": "boolean"
    },
    "attachment_views": {
      "type": "boolean"
    },
    "own_attachment_urls": {
      "type": "boolean"
    },
    "replica_reads": {
      "type": "boolean"
    },
    "coalesce_writes": {
      "type": "boolean"
    },
    "paused": {
      "type": "boolean"
    }
  },
  "plans": [
    "business",
    "team",
    "free",
    "custom"
  ],
  "alertKinds": [
    "red",
    "recovered",
    "needs_attention",
    "call_budget",
    "new_table",
    "breaking_change",
    "schema_changed"
  ],
  "webhookForms": [
    "json",
    "slack"
  ],
  "typesLanguages": [
    "ts",
    "zod",
    "kysely",
    "drizzle",
    "prisma",
    "pydantic",
    "sqlalchemy",
    "jsonschema",
    "postgrest",
    "postgraphile",
    "hasura",
    "dbt"
  ]
} as const;
