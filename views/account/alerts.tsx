/** The account's alerts: the user's own e-mail alerts, those of other members, webhooks, sent alerts. */

import type { ComponentChildren } from "preact";
import {
  type AlertKind,
  alertKindLabels,
  type FailingBase,
  type Preference,
  type SentMessage,
  type Webhook,
} from "../../core/alerts";
import {
  Ago,
  Badge,
  ButtonLink,
  Card,
  FieldsForm,
  type FormFields,
  FormPanel,
  type FormState,
  hasErrors,
  Note,
  Table,
} from "../components";
import { capitalized } from "../format";
import { FailingNow } from "./failing-now";
import { Messages } from "./sent-messages";

interface AlertsProps {
  /** The reader. */
  userId: string;
  failing: FailingBase[];
  members: Preference[];
  webhooks: Webhook[];
  messages: SentMessage[];
  /** Whether there is a mail server. */
  hasMail: boolean;
  /** Those of the form for the reader's e-mail. */
  preferences: FormFields;
  /** For a new webhook. */
  form: FormState;
  now: Date;
}

export function Alerts(props: AlertsProps) {
  const { userId, failing, members, webhooks, messages, hasMail, preferences, form, now } = props;
  const me = members.find((one) => one.userId === userId);
  const others = members.filter((one) => one.userId !== userId);
  return (
    <>
      <FailingNow bases={failing} />
      <p class="muted">
        We alert you when a problem lasts two minutes. Repeated and related problems are grouped into one
        message. <a href="/docs/alerts">How alerts work</a>
      </p>
      {me ? (
        <Card id="mail" title="E-mail to you">
          {hasMail ? null : (
            <Note tone="warn" title="No mail server is configured, so no e-mail is sent">
              Ask the operator of this service to set one up, or add a webhook below.
            </Note>
          )}
          {hasMail && !me.isEmailVerified ? (
            <Note tone="warn">
              Confirm your e-mail address first. Alerts are only sent to confirmed addresses.
            </Note>
          ) : null}
          <FieldsForm
            action="/account/alerts"
            button="Save"
            isPrimary
            form={{ fields: preferences, typed: { kinds: me.kinds }, errors: {} }}
          />
        </Card>
      ) : null}
      {others.length > 0 ? <Others members={others} /> : null}
      <Webhooks webhooks={webhooks} now={now}>
        <FormPanel
          id="new-webhook"
          action="/account/alerts/webhooks"
          button={webhooks.length === 0 ? "Add a webhook" : "Add another webhook"}
          isOpen={hasErrors(form)}
        >
          <FieldsForm action="/account/alerts/webhooks" button="Add webhook" form={form} />
        </FormPanel>
      </Webhooks>
      <Card id="messages" title="Latest messages">
        <Messages messages={messages} now={now} />
      </Card>
    </>
  );
}

function Others({ members }: { members: Preference[] }) {
  return (
    <Card id="others" title="E-mail to other members">
      <p class="muted">Each member chooses their own alerts on this page.</p>
      <Table
        caption="Other members"
        rows={members}
        columns={(column) => [
          column({ text: "E-mail", isHead: true, class: "wrap" }, (member) => member.email),
          column("Alerts", (member) => listKinds(member.kinds)),
        ]}
      />
    </Card>
  );
}

/** @param props.children the form for another one */
function Webhooks(props: { webhooks: Webhook[]; now: Date; children: ComponentChildren }) {
  const { webhooks, now, children } = props;
  return (
    <Card id="webhooks" title="Webhooks">
      {children}
      <Table
        caption="Webhooks"
        rows={webhooks}
        empty={<p class="muted">None yet: alerts can be sent to a chat, or to a program of yours.</p>}
        columns={(column) => [
          column({ text: "Name", isHead: true, class: "wrap" }, (webhook) => <bdi>{webhook.name}</bdi>),
          column("State", (webhook) => <WebhookState webhook={webhook} now={now} />),
          column("Alerts", (webhook) => listKinds(webhook.kinds)),
          column({ text: "Action", isHidden: true, class: "number" }, (webhook) => (
            <ButtonLink isSmall href={`/account/alerts/webhooks/${webhook.id}`}>
              Change<span class="visually-hidden"> {webhook.name}</span>
            </ButtonLink>
          )),
        ]}
      />
    </Card>
  );
}

export function WebhookState({ webhook, now }: { webhook: Webhook; now: Date }) {
  const { isOn, failingSince, error, deliveredAt } = webhook;
  if (!isOn) return <Badge>Off</Badge>;
  if (failingSince) {
    return (
      <>
        <Badge tone="red">Failing</Badge>
        <p class="small muted">
          First failed <Ago at={failingSince} now={now} />: {error}
        </p>
      </>
    );
  }
  if (!deliveredAt) return <Badge>Nothing sent yet</Badge>;
  return (
    <>
      <Badge tone="green">Works</Badge>{" "}
      <span class="small muted">
        <Ago at={deliveredAt} now={now} />
      </span>
    </>
  );
}

/** `Red, recovered, key`. */
function listKinds(kinds: readonly AlertKind[]): string {
  return capitalized(kinds.map((kind) => alertKindLabels[kind].short).join(", ")) || "Nothing";
}
