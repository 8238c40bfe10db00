/** Quarantined work: what ended processes and is therefore delayed or not tried again, with the command to retry it. */
import type { Quarantine } from "../../core/control/jobs";
import { Card } from "../components";
import { Ago } from "../components/ago";
import { Table } from "../components/table";
import { counted } from "../format";
import { BaseLink } from "./frame";

const tasks = { deletion: "Deletion", move: "End of a move", stray: "Removal of an unused database" };

/** Empty if nothing is quarantined. */
export function Quarantined({ baseIds, tasks: stuck, repairs, now }: Quarantine & { now: Date }) {
  if (baseIds.length + stuck.length + repairs.length === 0) return null;
  return (
    <Card id="quarantined" title="Quarantined">
      <p class="muted">
        This work crashed processes of the service. Look for "child process" and "crashed" in the logs before
        you retry it.
      </p>
      <Table
        caption="Quarantined work, and the command to retry it"
        head={[{ text: "Subject" }, { text: "Work" }, { text: "Last attempt" }, { text: "Command to retry" }]}
      >
        {baseIds.map((id) => (
          <Row key={id} isBase subject={id} what="Sync" command={`operator base retry ${id}`} />
        ))}
        {stuck.map(({ task, subject, triedAt }) => (
          <Row
            key={`${task} ${subject}`}
            isBase={task === "deletion"}
            subject={subject}
            what={tasks[task]}
            tried={<Ago at={triedAt} now={now} />}
            command={
              task === "deletion"
                ? `operator base delete ${subject} --force`
                : `operator base retry ${subject}`
            }
          />
        ))}
        {repairs.map(({ baseId, records }) => (
          <Row
            key={`repair ${baseId}`}
            isBase
            subject={baseId}
            what={`Repair of ${counted(records, "record")}`}
            command={`operator base resync ${baseId}`}
          />
        ))}
      </Table>
    </Card>
  );
}

function Row(props: {
  subject: string;
  isBase?: boolean;
  what: string;
  tried?: preact.ComponentChildren;
  command: string;
}) {
  return (
    <tr>
      <th scope="row" class="wrap">
        {props.isBase ? <BaseLink id={props.subject} /> : <code>{props.subject}</code>}
      </th>
      <td>{props.what}</td>
      <td class="nowrap">{props.tried ?? "–"}</td>
      <td class="wrap">
        <code>bun run {props.command}</code>
      </td>
    </tr>
  );
}
