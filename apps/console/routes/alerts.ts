/** API routes for alerts: e-mail preferences, the account's webhooks, and sent alerts. */
import { Elysia } from "elysia";
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listMessages,
  listPreferences,
  listWebhooks,
  setPreferences,
  toMessageJson,
  toWebhookJson,
  updateWebhook,
} from "../../../core/alerts";
import type { ManagementContext } from "../../../core/control/bases";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas/alerts";
import { raises } from "../schemas/parts";
import { testDelivery } from "../test-delivery";

const MESSAGES = 50;

export function alertRoutes(ctx: ManagementContext) {
  const { db } = ctx;

  async function toJson(accountId: string) {
    const [members, webhooks, messages] = await Promise.all([
      listPreferences(db, accountId),
      listWebhooks(db, accountId),
      listMessages(db, accountId, { limit: MESSAGES }),
    ]);
    return {
      members: members.map(({ userId, email, kinds }) => ({ user_id: userId, email, kinds })),
      webhooks: webhooks.map(toWebhookJson),
      messages: messages.map(toMessageJson),
    };
  }

  return new Elysia({ prefix: "/api/v1/alerts", tags: ["Alerts"] })
    .use(bearerAuth(db))
    .get("", async ({ account }) => toJson(account.id), {
      response: { 200: schemas.alerts },
      detail: { summary: "Get alert preferences, webhooks and the latest messages" },
    })
    .patch(
      "",
      async ({ account, actor, body }) => {
        const changes = body.members.map(({ user_id, kinds }) => ({ userId: user_id, kinds }));
        await setPreferences({ ...ctx, actor }, account.id, changes);
        return toJson(account.id);
      },
      {
        body: schemas.alertsChange,
        response: { 200: schemas.alerts },
        detail: {
          summary: "Set which alerts members get by e-mail",
          description: "Members that are not listed keep their settings.",
          ...raises("not_found"),
        },
      },
    )
    .get("/webhooks", async ({ account }) => (await listWebhooks(db, account.id)).map(toWebhookJson), {
      response: { 200: schemas.webhooks },
      detail: { summary: "The account's webhooks" },
    })
    .post(
      "/webhooks",
      async ({ account, actor, body, set }) => {
        const { form = "json", ...given } = body;
        const { webhook, secret } = await createWebhook({ ...ctx, actor }, account.id, { ...given, form });
        set.status = 201;
        return { ...toWebhookJson(webhook), secret };
      },
      {
        body: schemas.newWebhook,
        response: { 201: schemas.madeWebhook },
        detail: {
          summary: "Add a webhook",
          description: "Its messages are signed with the secret, which is shown in this answer only.",
          ...raises("conflict"),
        },
      },
    )
    .get(
      "/webhooks/:id",
      async ({ account, params }) => toWebhookJson(await getWebhook(db, params.id, account.id)),
      {
        params: schemas.webhookParams,
        response: { 200: schemas.webhook },
        detail: { summary: "One webhook" },
      },
    )
    .patch(
      "/webhooks/:id",
      async ({ account, actor, body, params }) => {
        const webhook = await getWebhook(db, params.id, account.id);
        const { on: isOn, ...change } = body;
        return toWebhookJson(await updateWebhook({ ...ctx, actor }, webhook, { ...change, isOn }));
      },
      {
        params: schemas.webhookParams,
        body: schemas.webhookChange,
        response: { 200: schemas.webhook },
        detail: { summary: "Change a webhook", description: "Omitted fields and the secret stay unchanged." },
      },
    )
    .post(
      "/webhooks/:id/test",
      async ({ account, params }) => {
        const error = await testDelivery(ctx, await getWebhook(db, params.id, account.id));
        return { ok: error === null, error };
      },
      {
        params: schemas.webhookParams,
        response: { 200: schemas.testDeliveryResult },
        detail: { summary: "Send a test message and report whether it was delivered" },
      },
    )
    .delete(
      "/webhooks/:id",
      async ({ account, actor, params }) => {
        await deleteWebhook({ ...ctx, actor }, await getWebhook(db, params.id, account.id));
        return new Response(null, { status: 204 });
      },
      {
        params: schemas.webhookParams,
        detail: {
          summary: "Delete a webhook",
          description: "No more messages will be sent, including queued ones.",
          responses: { 204: { description: "Deleted" } },
        },
      },
    );
}
