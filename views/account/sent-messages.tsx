/** The table of sent alerts. */
import type { SentMessage } from "../../core/alerts";
import { Ago, Badge, Empty, Table, type Tone } from "../components";
import { counted } from "../format";

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
      rows={messages}
      columns={(column) => [
        column({ text: "When", class: "nowrap" }, (message) => <Ago at={message.at} now={now} />),
        column({ text: "What", isHead: true, class: "wrap" }, (message) => <bdi>{message.subject}</bdi>),
        column({ text: "Delivery", class: "wrap" }, (message) => (
          <>
            <Badge tone={states[message.state].tone}>{states[message.state].text}</Badge>
            {message.error ? (
              <p class="small muted">
                {message.error}; {counted(message.attempts, "attempt")}
              </p>
            ) : null}
          </>
        )),
        column({ text: "To", class: "wrap" }, (message) => <bdi>{message.to}</bdi>),
      ]}
    />
  );
}
