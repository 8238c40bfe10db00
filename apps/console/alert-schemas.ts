/** Request and answer schemas for alerts: e-mail preferences, webhooks and sent alerts. */
import { t } from "elysia";
import { nullable, strict, timestamp } from "./schema-parts";

const kind = t.Union(
  [
    t.Literal("red"),
    t.Literal("recovered"),
    t.Literal("needs_attention", {
      description: "Its key is refused, or a person must act for another reason",
    }),
    t.Literal("call_budget", {
      description: "The month's calls will not last, or sync's part of them is spent",
    }),
    t.Literal("schema_changed"),
  ],
  { description: "What can be told of" },
);

const kinds = t.Array(kind, { maxItems: 20 });

const form = t.Union([
  t.Literal("json", { description: "All facts, as JSON" }),
  t.Literal("slack", { description: '`{"text": …}`, as Slack and others take it' }),
]);

const name = t.String({ maxLength: 100 });

const url = t.String({ maxLength: 2000, description: "https, on the internet; not shown again" });

export const webhook = t.Object({
  id: t.String(),
  name: t.String(),
  form,
  host: t.String({ description: "Of its address, which is not shown" }),
  kinds,
  on: t.Boolean(),
  created_at: timestamp,
  delivered_at: nullable(timestamp),
  failing_since: nullable(timestamp),
  error: nullable(t.String({ description: "Why the last message did not arrive" })),
});

export const webhooks = t.Array(webhook);

export const madeWebhook = t.Object({
  ...webhook.properties,
  secret: t.String({ description: "Signs its messages; shown this once" }),
});

export const newWebhook = t.Object(
  { name: t.Optional(name), url, form: t.Optional(form), kinds: t.Optional(kinds) },
  strict,
);

export const webhookChange = t.Partial(t.Object({ name, url, form, kinds, on: t.Boolean() }), {
  ...strict,
  minProperties: 1,
});

export const webhookParams = t.Object({
  id: t.String({ maxLength: 100, description: "Id of the webhook: whk_…" }),
});

export const testDeliveryResult = t.Object({
  ok: t.Boolean(),
  error: nullable(t.String({ description: "Why it did not arrive" })),
});

export const alerts = t.Object({
  members: t.Array(
    t.Object({
      user_id: t.String(),
      email: t.String(),
      kinds: t.Array(kind, { description: "What they are told of by e-mail" }),
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
        t.Literal("given_up", { description: "Tried again and again in vain" }),
        t.Literal("dropped", { description: "Its target, or what it tells of, has gone" }),
      ]),
      attempts: t.Integer(),
      error: nullable(t.String()),
      ended_at: nullable(timestamp),
    }),
    { description: "The latest 50, the newest first" },
  ),
});

export const alertsChange = t.Object(
  { members: t.Array(t.Object({ user_id: t.String({ maxLength: 100 }), kinds }, strict), { maxItems: 200 }) },
  strict,
);
