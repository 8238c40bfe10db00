/** Parts of the pages for alerts: the choice of kinds, the form of a webhook, sent alerts. */
import { type AlertKind, alertKindLabels, alertKinds, type SentMessage } from "../../core/alerts";
import {
  Badge,
  Button,
  Empty,
  ErrorNote,
  Field,
  Form,
  SelectField,
  Table,
  Toggle,
  type Tone,
} from "../components";
import { Ago } from "../components/ago";
import { counted } from "../format";

/** @param props.prefix of the ids: a page may have several */
export function KindToggles({ prefix, kinds }: { prefix: string; kinds: readonly AlertKind[] }) {
  return (
    <>
      {alertKinds.map((kind) => (
        <Toggle
          key={kind}
          id={`${prefix}-${kind}`}
          name={kind}
          label={alertKindLabels[kind].label}
          hint={alertKindLabels[kind].hint}
          checked={kinds.includes(kind)}
        />
      ))}
    </>
  );
}

/** As typed. */
export interface WebhookFormValues {
  name: string;
  url: string;
  form: string;
  kinds: AlertKind[];
}

export type WebhookErrors = Partial<Record<"name" | "url" | "form", string>>;

const formLabels = { json: "JSON, with all details", slack: "Slack" };

export function WebhookFormView(props: {
  action: string;
  button: string;
  form: WebhookFormValues;
  errors: WebhookErrors;
  /** Its URL stays unless another one is typed. */
  isKnown?: boolean;
}) {
  const { action, button, form, errors, isKnown = false } = props;
  return (
    <Form action={action} class="stack rows">
      {errors.form ? <ErrorNote>{errors.form}</ErrorNote> : null}
      <Field
        label={isKnown ? "New address" : "Address"}
        name="url"
        inputMode="url"
        value={form.url}
        error={errors.url}
        hint={
          isKnown
            ? "Leave empty to keep the current address, which is not shown again."
            : "https://… In Slack, use an app's “Incoming Webhooks”. The address is stored encrypted and not shown again."
        }
        maxLength={2000}
        autocomplete="off"
        spellcheck={false}
        required={!isKnown}
      />
      <SelectField
        label="Format"
        name="form"
        value={form.form}
        options={Object.entries(formLabels).map(([value, text]) => ({ value, text }))}
        hint="The Slack format is plain text and also works with Mattermost and others."
      />
      <Field
        label="Name"
        name="name"
        value={form.name}
        error={errors.name}
        hint={isKnown ? undefined : "A label for this webhook; defaults to its host."}
        maxLength={100}
        autocomplete="off"
        required={isKnown}
      />
      <fieldset class="stack">
        <legend>Send a message when</legend>
        <KindToggles prefix="webhook" kinds={form.kinds} />
      </fieldset>
      <Button>{button}</Button>
    </Form>
  );
}

const states: Record<SentMessage["state"], { text: string; tone: Tone }> = {
  waiting: { text: "Waiting", tone: "yellow" },
  sent: { text: "Sent", tone: "green" },
  given_up: { text: "Not delivered", tone: "red" },
  dropped: { text: "Dropped", tone: "neutral" },
};

export function Messages({ messages, now }: { messages: SentMessage[]; now: Date }) {
  if (messages.length === 0)
    return <Empty title="No messages yet">Alerts that are sent will be listed here.</Empty>;
  return (
    <Table
      caption="Messages"
      head={[{ text: "When" }, { text: "What" }, { text: "Delivery" }, { text: "To" }]}
    >
      {messages.map((message) => (
        <tr key={message.id}>
          <td class="nowrap">
            <Ago at={message.at} now={now} />
          </td>
          <th scope="row" class="wrap">
            <bdi>{message.subject}</bdi>
          </th>
          <td class="wrap">
            <Badge tone={states[message.state].tone}>{states[message.state].text}</Badge>
            {message.error ? (
              <p class="small muted">
                {message.error}; {counted(message.attempts, "attempt")}
              </p>
            ) : null}
          </td>
          <td class="wrap">
            <bdi>{message.to}</bdi>
          </td>
        </tr>
      ))}
    </Table>
  );
}
