/** One webhook: its secret (shown once), its state, its settings, sent alerts. */
import type { SentMessage, Webhook } from "../../core/alerts";
import type { CurrentUser } from "../../core/control/accounts";
import { Button, Card, CopyField, DialogLink, ErrorNote, Form, Note } from "../components";
import { Messages, type WebhookErrors, type WebhookFormValues, WebhookFormView } from "./alert-parts";
import { WebhookState } from "./alerts";
import { AccountFrame } from "./frame";

export interface WebhookPageProps {
  currentUser: CurrentUser;
  webhook: Webhook;
  messages: SentMessage[];
  form: WebhookFormValues;
  errors: WebhookErrors;
  now: Date;
  /** Just created. */
  secret?: string | undefined;
  /** Why a test delivery failed. */
  problem?: string | undefined;
}

export function WebhookPage(props: WebhookPageProps) {
  const { currentUser, webhook, messages, form, errors, now, secret, problem } = props;
  const path = `/account/alerts/webhooks/${webhook.id}`;
  return (
    <AccountFrame currentUser={currentUser} tab="/account/alerts">
      <p>
        <a href="/account/alerts">
          <span aria-hidden="true">← </span>All alerts
        </a>
      </p>
      {secret ? (
        <Note tone="good" title="Copy the secret now. It will not be shown again.">
          <div class="stack">
            <CopyField id="webhook-secret" label="Secret" value={secret} />
            <p>
              Basetide signs each message with this secret, in the header <code>X-Basetide-Signature</code>:{" "}
              <code>t=…,v1=…</code>, an HMAC-SHA256 of the time, a dot and the body. Slack and similar
              services do not need it.
            </p>
          </div>
        </Note>
      ) : null}
      <Card
        id="webhook"
        title={webhook.name}
        actions={
          <Form action={`${path}/test`}>
            <Button kind="primary">Send a test</Button>
          </Form>
        }
      >
        {problem ? <ErrorNote title="The test was not delivered">{problem}</ErrorNote> : null}
        <p class="wrap">
          <WebhookState webhook={webhook} now={now} />
        </p>
        <p class="muted wrap">
          At <bdi>{webhook.host}</bdi>; the rest of the address is hidden.
        </p>
        <Form action={`${path}/${webhook.isOn ? "off" : "on"}`}>
          <Button>{webhook.isOn ? "Turn off" : "Turn on"}</Button>
        </Form>
      </Card>
      <Card id="change" title="Change">
        <WebhookFormView action={path} button="Save" form={form} errors={errors} isKnown />
      </Card>
      <Card id="messages" title="Latest messages">
        <Messages messages={messages} now={now} />
      </Card>
      <Card id="end" title="Delete">
        <p class="muted">No more messages will be sent, including queued ones.</p>
        <DialogLink kind="danger" href={`${path}/delete`}>
          Delete webhook…
        </DialogLink>
      </Card>
    </AccountFrame>
  );
}
