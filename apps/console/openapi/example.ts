/** Creates the example of a schema: its own if it has one, else of its parts, and for texts by the property's name. */

import { platformFacts } from "../../../core/source";
import type { JsonSchema } from "../../../views/docs/openapi";
import type { Components } from "./json-schema";

const platform = platformFacts[0]!;
const TIME = "2026-11-22T18:30:00.000Z";

/** Examples of texts, by the name of the property, and of the object where that differs. */
const TEXTS: Record<string, string> = {
  "ApiError.code": "not_found",
  "AuditEntry.action": "base.connected",
  "AuditEntry.id": "1024",
  "AuditEntry.subject": "bas_7x2k9m4q8w1z5c3v6b0n",
  "Base.state": "active",
  "Database.id": "dbs_5t8y2u6i0o4p9a3s7d1f",
  "Database.name": "bt_65e97c76419a2773",
  "Indicator.reason": "Live: changes arrive within about a second",
  "Platform.id": platform.id,
  "Platform.name": platform.name,
  "Run.id": "412",
  "SchemaChange.id": "77",
  "SourceBase.id": "appW4Xn2Yq8Lr5TzK",
  "SqlUser.id": "squ_4c8e1g5j9m2p6r0t3v7x",
  "SqlUser.created_by": "ada@example.com",
  "SqlUser.name": "Metabase",
  "Webhook.id": "whk_3f7j1l5n9p2r6t0v4x8z",
  "Webhook.name": "Ops channel",
  "Workspace.id": "wsp_2b6d0f4h8k1m5q9s3v7x",
  "Workspace.name": "Marketing",
  "OperatorRequest.id": "req_1g5h9j3k7l0z4x8c2v6b",
  "OperatorRequest.answer": "",
  base_id: "appW4Xn2Yq8Lr5TzK",
  check: "rights",
  column: "due_date",
  database: "bt_65e97c76419a2773",
  database_id: "dbs_5t8y2u6i0o4p9a3s7d1f",
  email: "ada@example.com",
  field: "due_date",
  field_id: "fldP8rDm2WqJ5sLtN",
  host: "db.example.com",
  id: "bas_7x2k9m4q8w1z5c3v6b0n",
  key_help_url: platform.keyHelpUrl,
  message: "The role may create schemas",
  month: "2026-11",
  name: "Project Tracker",
  password: "fWq3vK8sZr1nTy6u",
  permission: "create",
  platform: platform.id,
  psql: "psql 'postgres://bt_65e97c76419a2773_reader@db.example.com:5432/bt_65e97c76419a2773'",
  reason: "not a date",
  record_id: "recK3v9TqWm2XsLbA",
  region: "eu-central-1",
  remains: "The database password of Project Tracker",
  request_id: "0b9d5c3e-6a1f-4f60-9a35-3d8d4a6f2c17",
  schema: "public",
  secret: "whsec_8Rk2Lm5Qx9Tz",
  source_id: "tblR7wQm3XsK9vLbA",
  source_name: "Project Tasks",
  source_type: "singleLineText",
  subject: "Project Tracker is red",
  table: "project_tasks",
  table_id: "tblR7wQm3XsK9vLbA",
  to: "ada@example.com",
  type: "text",
  url: "postgres://bt_65e97c76419a2773_reader:fWq3vK8sZr1nTy6u@db.example.com:5432/bt_65e97c76419a2773",
  user: "bt_65e97c76419a2773_reader",
  user_id: "usr_4c8e2g6i0k5m9o3q7s1u",
  value: "soon",
  workspace_id: "wsp_2b6d0f4h8k1m5q9s3v7x",
};

/** Examples of numbers that are not counts of this size. */
const NUMBERS: Record<string, number> = { port: 5432, lag_ms: 840, attempts: 1, reserve: 20_000 };
const COUNT = 12;

/** @param at the name of the object's schema, and of the property */
export function exampleOf(schema: JsonSchema, components: Components, at: At = {}): unknown {
  if (schema.examples) return schema.examples[0];
  if (schema.$ref !== undefined) {
    const object = schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
    return exampleOf(components.get(object)!, components, { ...at, object });
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return TEXTS[`${at.object}.${at.property}`] ?? schema.enum[0];
  if (schema.anyOf) {
    const form = schema.anyOf.find(({ type }) => type !== "null");
    return form ? exampleOf(form, components, at) : null;
  }
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object") return exampleObject(schema, components, at);
  if (type === "array") return schema.items ? [exampleOf(schema.items, components, at)] : [];
  if (type === "boolean") return true;
  if (type === "integer" || type === "number") {
    return Math.max(schema.minimum ?? 0, NUMBERS[at.property ?? ""] ?? COUNT);
  }
  if (type !== "string") return null;
  if (schema.format === "date-time") return TIME;
  return TEXTS[`${at.object}.${at.property}`] ?? TEXTS[at.property ?? ""] ?? "text";
}

function exampleObject(schema: JsonSchema, components: Components, { object }: At): unknown {
  if (typeof schema.additionalProperties === "object") return {};
  return Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([property, part]) => [
      property,
      exampleOf(part, components, { object, property }),
    ]),
  );
}

interface At {
  object?: string | undefined;
  property?: string | undefined;
}
