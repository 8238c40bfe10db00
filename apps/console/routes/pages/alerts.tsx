/** Pages for alerts: e-mail preferences, webhooks, and sent alerts. */

import { Elysia } from "elysia";
import {
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
  webhookForms,
} from "../../../../core/alerts";
import { actorOf, type CurrentUser } from "../../../../core/control/accounts";
import { isBasetideError } from "../../../../core/errors";
import type { WebhookFormValues } from "../../../../views/account/alert-parts";
import { Alerts, type AlertsProps } from "../../../../views/account/alerts";
import { WebhookPage, type WebhookPageProps } from "../../../../views/account/webhook";
import { formErrorOf } from "../../form-error";
import { answer, type ConsoleContext, finish, formText, onceOf, signedIn } from "../../page-kit";
import { testDelivery } from "../../test-delivery";

const PATH = "/account/alerts";
const MESSAGES = 30;

const EMPTY: WebhookFormValues = { name: "", url: "", form: "json", kinds: usualKinds };

export function alertPages(ctx: ConsoleContext) {
  const { config, db } = ctx;
  const by = (currentUser: CurrentUser) => ({ ...ctx, actor: actorOf(currentUser) });

  async function showAll(
    request: Request,
    currentUser: CurrentUser,
    shown: Partial<Pick<AlertsProps, "form" | "errors">>,
    status = 200,
  ) {
    const accountId = currentUser.account.id;
    const now = new Date();
    const [failing, members, webhooks, messages] = await Promise.all([
      failingBases(db, accountId, now),
      listPreferences(db, accountId),
      listWebhooks(db, accountId),
      listMessages(db, accountId, { limit: MESSAGES }),
    ]);
    const hasMail = config.smtpUrl !== undefined;
    return answer(
      request,
      { title: "Alerts", currentUser, active: "alerts", status },
      <Alerts
        {...{
          currentUser,
          failing,
          members,
          webhooks,
          messages,
          hasMail,
          form: EMPTY,
          errors: {},
          now,
          ...shown,
        }}
      />,
    );
  }

  async function showOne(
    request: Request,
    currentUser: CurrentUser,
    webhook: Webhook,
    shown: Partial<Pick<WebhookPageProps, "form" | "errors" | "secret" | "problem">>,
    status = 200,
  ) {
    const messages = await listMessages(db, currentUser.account.id, {
      limit: MESSAGES,
      webhookId: webhook.id,
    });
    const form = { name: webhook.name, url: "", form: webhook.form, kinds: webhook.kinds };
    return answer(
      request,
      { title: webhook.name, currentUser, active: "alerts", status },
      <WebhookPage {...{ currentUser, webhook, messages, form, errors: {}, now: new Date(), ...shown }} />,
    );
  }

  return new Elysia({ prefix: PATH, detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", ({ request, currentUser }) => showAll(request, currentUser, {}))
    .post("", async ({ request, currentUser, account, body }) => {
      await setPreferences(by(currentUser), account.id, [
        { userId: currentUser.userId, kinds: kindsOf(body) },
      ]);
      return finish(request, PATH, "Saved.");
    })
    .post("/webhooks", async ({ request, currentUser, account, body }) => {
      const form = readForm(body);
      try {
        const { webhook, secret } = await createWebhook(by(currentUser), account.id, {
          ...form,
          form: formOf(form),
        });
        return finish(request, `${PATH}/webhooks/${webhook.id}`, {
          toast: { text: "Webhook added." },
          once: { secret },
        });
      } catch (error) {
        if (!isBasetideError(error, "invalid_request") && !isBasetideError(error, "conflict")) throw error;
        return showAll(request, currentUser, { form, errors: { url: error.message } }, 422);
      }
    })
    .get("/webhooks/:id", async ({ request, currentUser, account, params }) => {
      const { secret, problem } = onceOf(request);
      return showOne(request, currentUser, await getWebhook(db, params.id, account.id), { secret, problem });
    })
    .post("/webhooks/:id", async ({ request, currentUser, account, params, body }) => {
      const webhook = await getWebhook(db, params.id, account.id);
      const { url, ...rest } = readForm(body);
      const change = { ...rest, form: formOf(rest), url: url === "" ? undefined : url };
      const formError = await formErrorOf(() => updateWebhook(by(currentUser), webhook, change));
      if (!formError) return finish(request, `${PATH}/webhooks/${webhook.id}`, "Saved.");
      const errors = { [url === "" ? "name" : "url"]: formError.message };
      return showOne(request, currentUser, webhook, { form: { ...rest, url }, errors }, formError.status);
    })
    .post("/webhooks/:id/test", async ({ request, account, params }) => {
      const webhook = await getWebhook(db, params.id, account.id);
      const problem = await testDelivery(ctx, webhook);
      const page = `${PATH}/webhooks/${webhook.id}`;
      if (problem === null) return finish(request, page, "The test was delivered.");
      return finish(request, page, { once: { problem } });
    })
    .post("/webhooks/:id/on", ({ request, currentUser, params }) =>
      setOn(request, currentUser, params.id, true),
    )
    .post("/webhooks/:id/off", ({ request, currentUser, params }) =>
      setOn(request, currentUser, params.id, false),
    )
    .post("/webhooks/:id/delete", async ({ request, currentUser, account, params }) => {
      await deleteWebhook(by(currentUser), await getWebhook(db, params.id, account.id));
      return finish(request, PATH, "Webhook deleted.");
    });

  async function setOn(request: Request, currentUser: CurrentUser, id: string, isOn: boolean) {
    const webhook = await getWebhook(db, id, currentUser.account.id);
    await updateWebhook(by(currentUser), webhook, { isOn });
    return finish(request, `${PATH}/webhooks/${webhook.id}`, "Saved.");
  }
}

function readForm(body: unknown): WebhookFormValues {
  return {
    name: formText(body, "name"),
    url: formText(body, "url"),
    form: formText(body, "form"),
    kinds: kindsOf(body),
  };
}

/** An unknown format is read as the first one. */
function formOf({ form }: Pick<WebhookFormValues, "form">): Webhook["form"] {
  return webhookForms.find((one) => one === form) ?? "json";
}

function kindsOf(body: unknown) {
  return alertKinds.filter((kind) => formText(body, kind) === "on");
}
