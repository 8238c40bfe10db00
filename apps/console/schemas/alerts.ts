/** Request and answer schemas for alerts: e-mail preferences, webhooks and sent alerts. */
import { t } from "elysia";
import { named, nullable, strict, timestamp } from "./parts";

const kind = named(
  "AlertKind",
  t.Union(
    [
      t.Literal("red"),
      t.Literal("recovered"),
      t.Literal("needs_attention", {
        description: "Airtable rejects the key, or sync has stopped until someone acts",
      }),
      t.Literal("call_budget", {
        description: "This month's calls will not last, or sync has used its share of them",
      }),
      t.Literal("new_table", {
        description: "A new table in Airtable is not copied until a person decides",
      }),
      t.Literal("breaking_change", {
        description: "Tables or columns were dropped, renamed or given another type",
      }),
      t.Literal("schema_changed", { description: "Tables or columns were added" }),
    ],
    { description: "Kind of alert" },
  ),
);

const kinds = t.Array(kind, { maxItems: 20 });

const form = named(
  "WebhookForm",
  t.Union([
    t.Literal("json", { description: "All facts as JSON" }),
    t.Literal("slack", { description: '`{"text": …}`, accepted by Slack and others' }),
  ]),
);

const name = t.String({ maxLength: 100 });

const url = t.String({
  maxLength: 2000,
  description: "https URL on the public internet; it is not shown again",
});

export const webhook = named(
  "Webhook",
  t.Object({
    id: t.String(),
    name: t.String(),
    form,
    host: t.String({ description: "Host of the webhook's URL; the URL itself is not shown" }),
    kinds,
    on: t.Boolean(),
    created_at: timestamp,
    delivered_at: nullable(timestamp),
    failing_since: nullable(timestamp),
    error: nullable(t.String({ description: "Why the last delivery failed" })),
  }),
);

export const webhooks = t.Array(webhook);

export const madeWebhook = named(
  "NewWebhookSecret",
  t.Object({
    ...webhook.properties,
    secret: t.String({ description: "Key that signs the messages; shown only once" }),
  }),
);

export const newWebhook = named(
  "NewWebhook",
  t.Object({ name: t.Optional(name), url, form: t.Optional(form), kinds: t.Optional(kinds) }, strict),
  { name: "Ops channel", url: "https://hooks.example.com/basetide", kinds: ["red", "recovered"] },
);

export const webhookChange = named(
  "WebhookChange",
  t.Partial(t.Object({ name, url, form, kinds, on: t.Boolean() }), {
    ...strict,
    minProperties: 1,
  }),
  { kinds: ["red", "needs_attention"], on: true },
);

export const webhookParams = t.Object({
  id: t.String({ maxLength: 100, description: "Id of the webhook: whk_…" }),
});

export const testDeliveryResult = named(
  "TestDelivery",
  t.Object({
    ok: t.Boolean(),
    error: nullable(t.String({ description: "Why the delivery failed" })),
  }),
);

export const alerts = named(
  "Alerts",
  t.Object({
    members: t.Array(
      t.Object({
        user_id: t.String(),
        email: t.String(),
        kinds: t.Array(kind, { description: "Kinds of alerts that this member gets by e-mail" }),
      }),
    ),
    webhooks,
    messages: t.Array(
      t.Object({
        id: t.String(),
        at: timestamp,
        channel: t.Union([t.Literal("mail"), t.Literal("webhook")]),
        to: t.String(),
        webhook_id: nullable(t.String()),
        subject: t.String(),
        state: t.Union([
          t.Literal("waiting"),
          t.Literal("sent"),
          t.Literal("given_up", { description: "All delivery attempts failed" }),
          t.Literal("dropped", { description: "The recipient or the subject no longer exists" }),
        ]),
        attempts: t.Integer(),
        error: nullable(t.String()),
        ended_at: nullable(timestamp),
      }),
      { description: "The latest 50, newest first" },
    ),
  }),
);

export const alertsChange = named(
  "AlertsChange",
  t.Object(
    {
      members: t.Array(t.Object({ user_id: t.String({ maxLength: 100 }), kinds }, strict), { maxItems: 200 }),
    },
    strict,
  ),
  { members: [{ user_id: "usr_4c8e2g6i0k5m9o3q7s1u", kinds: ["red", "call_budget"] }] },
);
