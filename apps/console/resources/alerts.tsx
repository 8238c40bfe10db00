/** Alerts: which ones members get by e-mail, the account's webhooks, and what was sent. */
import { t } from "elysia";
import {
  alertKindLabels,
  alertKinds,
  createWebhook,
  deleteWebhook,
  failingBases,
  getWebhook,
  listMessages,
  listPreferences,
  listWebhooks,
  setPreferences,
  updateWebhook,
  usualKinds,
  type Webhook,
} from "../../../core/alerts";
import type { Db } from "../../../core/context";
import { Alerts } from "../../../views/account/alerts";
import { AccountFrame } from "../../../views/account/frame";
import { WebhookPage } from "../../../views/account/webhook";
import type { FormField, FormFields } from "../../../views/components";
import { emptyForm } from "../resource-kit/read-form";
import { ofAccount, resource } from "../resource-kit/resource";
import { named, nullable, oneOf, strict, timestamp } from "../schemas/parts";
import { testDelivery } from "../test-delivery";

const API = "/api/v1/alerts";
const PAGE = "/account/alerts";
const HOOK = `${PAGE}/webhooks/:id`;
const MESSAGES_ON_PAGE = 30;
const MESSAGES_IN_API = 50;

const kind = named(
  "AlertKind",
  oneOf(alertKinds, {
    meanings: {
      needs_attention: "Airtable rejects the key, or sync has stopped until someone acts",
      call_budget: "This month's calls will not last, or sync has used its share of them",
      new_table: "A new table in Airtable is not copied until a person decides",
      proposal_waiting: "An agent proposes changes of records, which a member approves or rejects",
      breaking_change: "Tables or columns were dropped, renamed or given another type",
      schema_changed: "Tables or columns were added",
    },
    description: "Kind of alert",
  }),
);
const kinds = t.Array(kind, { maxItems: 20 });
const form = named(
  "WebhookForm",
  oneOf(["json", "slack"], {
    meanings: { json: "All facts as JSON", slack: '`{"text": …}`, accepted by Slack and others' },
  }),
);
const name = t.String({ maxLength: 100 });
const url = t.String({
  maxLength: 2000,
  description: "https URL on the public internet; it is not shown again",
});

const webhook = named(
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
const shown = (one: Webhook) => ({ ...one, on: one.isOn });
const shownWebhooks = async (db: Db, accountId: string) => (await listWebhooks(db, accountId)).map(shown);

const alerts = named(
  "Alerts",
  t.Object({
    members: t.Array(
      t.Object({
        user_id: t.String(),
        email: t.String(),
        kinds: t.Array(kind, { description: "Kinds of alerts that this member gets by e-mail" }),
      }),
    ),
    webhooks: t.Array(webhook),
    messages: t.Array(
      t.Object({
        id: t.String(),
        at: timestamp,
        channel: oneOf(["mail", "webhook"]),
        to: t.String(),
        webhook_id: nullable(t.String()),
        subject: t.String(),
        state: oneOf(["waiting", "sent", "given_up", "dropped"], {
          meanings: {
            given_up: "All delivery attempts failed",
            dropped: "The recipient or the subject no longer exists",
          },
        }),
        attempts: t.Integer(),
        error: nullable(t.String()),
        ended_at: nullable(timestamp),
      }),
      { description: "The latest 50, newest first" },
    ),
  }),
);

async function allAlerts(db: Db, accountId: string) {
  const [members, webhooks, messages] = await Promise.all([
    listPreferences(db, accountId),
    shownWebhooks(db, accountId),
    listMessages(db, accountId, { limit: MESSAGES_IN_API }),
  ]);
  const channelOf = ({ userId }: { userId: string | null }) => (userId === null ? "webhook" : "mail");
  return {
    members,
    webhooks,
    messages: messages.map((one) => ({ ...one, channel: channelOf(one) }) as const),
  };
}

const kindFields = (prefix: string): FormField => ({
  kind: "switches",
  prefix,
  options: alertKinds.map((value) => ({ value, ...alertKindLabels[value] })),
  ...(prefix === "webhook" && { label: "Send a message when" }),
});

const preferenceFields: FormFields = { kinds: kindFields("mail") };

const newFields = {
  url: {
    kind: "text",
    label: "Address",
    inputMode: "url",
    hint: "https://… In Slack, use an app's “Incoming Webhooks”. The address is stored encrypted and not shown again.",
    maxLength: 2000,
    spellcheck: false,
  },
  form: {
    kind: "select",
    label: "Format",
    options: [
      { value: "json", text: "JSON, with all details" },
      { value: "slack", text: "Slack" },
    ],
    hint: "The Slack format is plain text and also works with Mattermost and others.",
  },
  name: {
    kind: "text",
    label: "Name",
    hint: "A label for this webhook; defaults to its host.",
    isOptional: true,
    maxLength: 100,
  },
  kinds: kindFields("webhook"),
} satisfies FormFields;

const changeFields = {
  ...newFields,
  url: {
    ...newFields.url,
    label: "New address",
    hint: "Leave empty to keep the current address, which is not shown again.",
    isOptional: true,
  },
  name: { kind: "text", label: "Name", maxLength: 100 },
} satisfies FormFields;

export const alertsResource = resource({
  tag: "Alerts",
  params: t.Object({ id: t.String({ maxLength: 100, description: "Id of the webhook: whk_…" }) }),
  scope: ofAccount,
  find: ({ db }, account, { id }) => getWebhook(db, id, account.id),
  console: {
    facts: () => ({ active: "alerts" }),
    frame: (_, content) => <AccountFrame tab={PAGE}>{content}</AccountFrame>,
    all: {
      path: PAGE,
      title: "Alerts",
      async show({ db, config }, { id }, { form: sent, user }) {
        const now = new Date();
        const [failing, members, webhooks, messages] = await Promise.all([
          failingBases(db, id, now),
          listPreferences(db, id),
          listWebhooks(db, id),
          listMessages(db, id, { limit: MESSAGES_ON_PAGE }),
        ]);
        return (
          <Alerts
            {...{ failing, members, webhooks, messages, now }}
            userId={user.userId}
            hasMail={config.smtpUrl !== undefined}
            preferences={preferenceFields}
            form={sent ?? emptyForm(newFields, { form: "json", kinds: usualKinds })}
          />
        );
      },
    },
    one: {
      path: HOOK,
      title: (one) => one.name,
      async show({ db }, one, { form: sent, once: { secret, problem } }) {
        const limit = MESSAGES_ON_PAGE;
        const messages = await listMessages(db, one.accountId, { limit, webhookId: one.id });
        const typed = { name: one.name, form: one.form, kinds: one.kinds };
        return (
          <WebhookPage
            {...{ webhook: one, messages, secret, problem, now: new Date() }}
            form={sent ?? emptyForm(changeFields, typed)}
          />
        );
      },
    },
  },
})
  .all({
    api: `GET ${API}`,
    summary: "Get alert preferences, webhooks and the latest messages",
    answer: alerts,
    run: ({ db }, account) => allAlerts(db, account.id),
  })
  .all({
    api: `PATCH ${API}`,
    summary: "Set which alerts members get by e-mail",
    description: "Members that are not listed keep their settings.",
    raises: ["not_found"],
    body: named(
      "AlertsChange",
      t.Object(
        {
          members: t.Array(t.Object({ user_id: t.String({ maxLength: 100 }), kinds }, strict), {
            maxItems: 200,
          }),
        },
        strict,
      ),
      { members: [{ user_id: "usr_4c8e2g6i0k5m9o3q7s1u", kinds: ["red", "call_budget"] }] },
    ),
    answer: alerts,
    async run(ctx, account, { members }) {
      await setPreferences(
        ctx,
        account.id,
        members.map((one) => ({ userId: one.user_id, kinds: one.kinds })),
      );
      return allAlerts(ctx.db, account.id);
    },
    form: {
      path: PAGE,
      fields: preferenceFields,
      read: (typed, _, { user }) => ({
        errors: {},
        body: { members: [{ user_id: user?.userId, kinds: typed.kinds }] },
      }),
      to: PAGE,
      done: "Saved.",
    },
  })
  .all({
    api: `GET ${API}/webhooks`,
    summary: "The account's webhooks",
    answer: t.Array(webhook),
    run: ({ db }, account) => shownWebhooks(db, account.id),
  })
  .all({
    api: `POST ${API}/webhooks`,
    summary: "Add a webhook",
    description: "Its messages are signed with the secret, which is shown in this answer only.",
    raises: ["conflict"],
    status: 201,
    body: named(
      "NewWebhook",
      t.Object({ name: t.Optional(name), url, form: t.Optional(form), kinds: t.Optional(kinds) }, strict),
      { name: "Ops channel", url: "https://hooks.example.com/basetide", kinds: ["red", "recovered"] },
    ),
    answer: named(
      "NewWebhookSecret",
      t.Object({
        ...webhook.properties,
        secret: t.String({ description: "Key that signs the messages; shown only once" }),
      }),
    ),
    async run(ctx, account, given) {
      const made = await createWebhook(ctx, account.id, { ...given, form: given.form ?? "json" });
      return { ...shown(made.webhook), secret: made.secret };
    },
    form: {
      path: `${PAGE}/webhooks`,
      fields: newFields,
      errorAt: "url",
      to: ({ id }) => `${PAGE}/webhooks/${id}`,
      done: ({ secret }) => ({ toast: { text: "Webhook added." }, once: { secret } }),
    },
  })
  .one({
    api: `GET ${API}/webhooks/:id`,
    summary: "One webhook",
    answer: webhook,
    run: async (_, one) => shown(one),
  })
  .one({
    api: `PATCH ${API}/webhooks/:id`,
    summary: "Change a webhook",
    description: "Omitted fields and the secret stay unchanged.",
    body: named(
      "WebhookChange",
      t.Partial(t.Object({ name, url, form, kinds, on: t.Boolean() }), { ...strict, minProperties: 1 }),
      { kinds: ["red", "needs_attention"], on: true },
    ),
    answer: webhook,
    run: async (ctx, one, { on: isOn, ...change }) =>
      shown(await updateWebhook(ctx, one, { ...change, isOn })),
    form: {
      path: HOOK,
      fields: changeFields,
      errorAt: (typed) => (typed.url === "" ? "name" : "url"),
      to: HOOK,
      done: "Saved.",
    },
  })
  .one({
    run: (ctx, one) => updateWebhook(ctx, one, { isOn: true }),
    form: { path: `${HOOK}/on`, to: HOOK, done: "Saved." },
  })
  .one({
    run: (ctx, one) => updateWebhook(ctx, one, { isOn: false }),
    form: { path: `${HOOK}/off`, to: HOOK, done: "Saved." },
  })
  .one({
    api: `POST ${API}/webhooks/:id/test`,
    summary: "Send a test message and report whether it was delivered",
    answer: named(
      "TestDelivery",
      t.Object({ ok: t.Boolean(), error: nullable(t.String({ description: "Why the delivery failed" })) }),
    ),
    async run(ctx, one) {
      const error = await testDelivery(ctx, one);
      return { ok: error === null, error };
    },
    form: {
      path: `${HOOK}/test`,
      to: HOOK,
      done: ({ error }) => (error === null ? "The test was delivered." : { once: { problem: error } }),
    },
  })
  .one({
    api: `DELETE ${API}/webhooks/:id`,
    summary: "Delete a webhook",
    description: "No more messages will be sent, including queued ones.",
    run: deleteWebhook,
    form: {
      path: `${HOOK}/delete`,
      to: PAGE,
      done: "Webhook deleted.",
      asks: (one) => ({
        title: `Delete the webhook “${one.name}”?`,
        effect: <p>No more messages will be sent, including queued ones.</p>,
        button: "Delete webhook",
        isDanger: true,
        back: HOOK,
      }),
    },
  });
