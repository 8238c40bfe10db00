/** The table of sent alerts. */
import type { SentMessage } from "../../core/alerts";
import { Badge, Empty, Table, type Tone } from "../components";
import { Ago } from "../components/ago";
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
