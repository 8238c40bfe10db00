/** One webhook: its secret (shown once), its state, its settings, sent alerts. */
import type { SentMessage, Webhook } from "../../core/alerts";
import {
  BackLink,
  Button,
  Card,
  CopyField,
  DialogLink,
  ErrorNote,
  FieldsForm,
  Form,
  type FormState,
  Note,
} from "../components";
import { WebhookState } from "./alerts";
import { Messages } from "./sent-messages";

interface WebhookPageProps {
  webhook: Webhook;
  messages: SentMessage[];
  form: FormState;
  now: Date;
  /** Just created. */
  secret?: string | undefined;
  /** Why a test delivery failed. */
  problem?: string | undefined;
}

export function WebhookPage(props: WebhookPageProps) {
  const { webhook, messages, form, now, secret, problem } = props;
  const path = `/account/alerts/webhooks/${webhook.id}`;
  return (
    <>
      <BackLink href="/account/alerts">All alerts</BackLink>
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
        <FieldsForm action={path} button="Save" form={form} />
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
    </>
  );
}
