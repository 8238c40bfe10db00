/** Pages about alerts: what one is told of, webhooks, what was sent. */

import { Elysia } from "elysia";
import {
  alertKinds,
  createWebhook,
  deleteWebhook,
  getWebhook,
  listMessages,
  listPreferences,
  listWebhooks,
  setPreferences,
  updateWebhook,
  usualKinds,
  type Webhook,
  webhookForms,
} from "../../../../core/alerts";
import { actorOf, type Viewer } from "../../../../core/control/accounts";
import { isBasetideError } from "../../../../core/errors";
import type { WebhookForm } from "../../../../views/account/alert-parts";
import { Alerts, type AlertsProps } from "../../../../views/account/alerts";
import { WebhookPage, type WebhookPageProps } from "../../../../views/account/webhook";
import { formErrorOf } from "../../form-error";
import { answer, type ConsoleContext, formText, goTo, signedIn } from "../../page-kit";
import { webhookTrial } from "../../test-delivery";

const PATH = "/account/alerts";
const MESSAGES = 30;

const done: Record<string, string> = {
  saved: "Saved.",
  arrived: "The trial has arrived.",
  deleted: "The webhook is deleted.",
};

const EMPTY: WebhookForm = { name: "", url: "", form: "json", kinds: usualKinds };

export function alertPages(ctx: ConsoleContext) {
  const { config, db } = ctx;
  const by = (viewer: Viewer) => ({ ...ctx, actor: actorOf(viewer) });

  async function showAll(
    request: Request,
    viewer: Viewer,
    shown: Partial<Pick<AlertsProps, "form" | "errors" | "done">>,
    status = 200,
  ) {
    const accountId = viewer.account.id;
    const [members, webhooks, messages] = await Promise.all([
      listPreferences(db, accountId),
      listWebhooks(db, accountId),
      listMessages(db, accountId, { limit: MESSAGES }),
    ]);
    const hasMail = config.smtpUrl !== undefined;
    return answer(
      request,
      { title: "Alerts", viewer, active: "account", status },
      <Alerts
        {...{
          viewer,
          members,
          webhooks,
          messages,
          hasMail,
          form: EMPTY,
          errors: {},
          now: new Date(),
          ...shown,
        }}
      />,
    );
  }

  async function showOne(
    request: Request,
    viewer: Viewer,
    webhook: Webhook,
    shown: Partial<Pick<WebhookPageProps, "form" | "errors" | "secret" | "trouble" | "done">>,
    status = 200,
  ) {
    const messages = await listMessages(db, viewer.account.id, { limit: MESSAGES, webhookId: webhook.id });
    const form = { name: webhook.name, url: "", form: webhook.form, kinds: webhook.kinds };
    return answer(
      request,
      { title: webhook.name, viewer, active: "account", status },
      <WebhookPage {...{ viewer, webhook, messages, form, errors: {}, now: new Date(), ...shown }} />,
    );
  }

  return new Elysia({ prefix: PATH, detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", ({ request, viewer, query }) => showAll(request, viewer, { done: done[query.done ?? ""] }))
    .post("", async ({ request, viewer, account, body }) => {
      await setPreferences(by(viewer), account.id, [{ userId: viewer.userId, kinds: kindsOf(body) }]);
      return goTo(request, `${PATH}?done=saved`);
    })
    .post("/webhooks", async ({ request, viewer, account, body }) => {
      const form = readForm(body);
      try {
        const { webhook, secret } = await createWebhook(by(viewer), account.id, {
          ...form,
          form: formOf(form),
        });
        // Shown in the answer itself, and nowhere again: there is no address to come back to.
        return showOne(request, viewer, webhook, { secret });
      } catch (error) {
        if (!isBasetideError(error, "invalid_request") && !isBasetideError(error, "conflict")) throw error;
        return showAll(request, viewer, { form, errors: { url: error.message } }, 422);
      }
    })
    .get("/webhooks/:id", async ({ request, viewer, account, params, query }) => {
      const webhook = await getWebhook(db, params.id, account.id);
      return showOne(request, viewer, webhook, { done: done[query.done ?? ""] });
    })
    .post("/webhooks/:id", async ({ request, viewer, account, params, body }) => {
      const webhook = await getWebhook(db, params.id, account.id);
      const { url, ...rest } = readForm(body);
      const change = { ...rest, form: formOf(rest), url: url === "" ? undefined : url };
      const formError = await formErrorOf(() => updateWebhook(by(viewer), webhook, change));
      if (!formError) return goTo(request, `${PATH}/webhooks/${webhook.id}?done=saved`);
      const errors = { [url === "" ? "name" : "url"]: formError.message };
      return showOne(request, viewer, webhook, { form: { ...rest, url }, errors }, formError.status);
    })
    .post("/webhooks/:id/test", async ({ request, viewer, account, params }) => {
      const webhook = await getWebhook(db, params.id, account.id);
      const trouble = await webhookTrial(ctx, webhook);
      if (trouble === null) return goTo(request, `${PATH}/webhooks/${webhook.id}?done=arrived`);
      return showOne(request, viewer, await getWebhook(db, webhook.id, account.id), { trouble });
    })
    .post("/webhooks/:id/on", ({ request, viewer, params }) => setOn(request, viewer, params.id, true))
    .post("/webhooks/:id/off", ({ request, viewer, params }) => setOn(request, viewer, params.id, false))
    .post("/webhooks/:id/delete", async ({ request, viewer, account, params }) => {
      await deleteWebhook(by(viewer), await getWebhook(db, params.id, account.id));
      return goTo(request, `${PATH}?done=deleted`);
    });

  async function setOn(request: Request, viewer: Viewer, id: string, isOn: boolean) {
    const webhook = await getWebhook(db, id, viewer.account.id);
    await updateWebhook(by(viewer), webhook, { isOn });
    return goTo(request, `${PATH}/webhooks/${webhook.id}?done=saved`);
  }
}

function readForm(body: unknown): WebhookForm {
  return {
    name: formText(body, "name"),
    url: formText(body, "url"),
    form: formText(body, "form"),
    kinds: kindsOf(body),
  };
}

/** A form that is none of ours is taken for the first. */
function formOf({ form }: Pick<WebhookForm, "form">): Webhook["form"] {
  return webhookForms.find((one) => one === form) ?? "json";
}

function kindsOf(body: unknown) {
  return alertKinds.filter((kind) => formText(body, kind) === "on");
}
