/** Quarantined work: what ended processes and is therefore delayed or not tried again, with the command to retry it. */
import type { ComponentChildren } from "preact";
import type { Quarantine } from "../../core/control/jobs";
import { Ago, Card, Table } from "../components";
import { counted } from "../format";
import { BaseLink } from "./frame";

const tasks = { deletion: "Deletion", move: "End of a move", stray: "Removal of an unused database" };

interface Stuck {
  subject: ComponentChildren;
  what: string;
  triedAt?: Date;
  command: string;
}

/** Empty if nothing is quarantined. */
export function Quarantined({ baseIds, tasks: stuck, repairs, now }: Quarantine & { now: Date }) {
  const rows: Stuck[] = [
    ...baseIds.map((id) => ({
      subject: <BaseLink id={id} />,
      what: "Sync",
      command: `operator base retry ${id}`,
    })),
    ...stuck.map(({ task, subject, triedAt }) => {
      const isBase = task === "deletion";
      return {
        subject: isBase ? <BaseLink id={subject} /> : <code>{subject}</code>,
        what: tasks[task],
        triedAt,
        command: isBase ? `operator base delete ${subject} --force` : `operator base retry ${subject}`,
      };
    }),
    ...repairs.map(({ baseId, records }) => ({
      subject: <BaseLink id={baseId} />,
      what: `Repair of ${counted(records, "record")}`,
      command: `operator base resync ${baseId}`,
    })),
  ];
  if (rows.length === 0) return null;
  return (
    <Card id="quarantined" title="Quarantined">
      <p class="muted">
        This work crashed processes of the service. Look for "child process" and "crashed" in the logs before
        you retry it.
      </p>
      <Table
        caption="Quarantined work, and the command to retry it"
        rows={rows}
        columns={(column) => [
          column({ text: "Subject", isHead: true, class: "wrap" }, ({ subject }) => subject),
          column("Work", ({ what }) => what),
          column({ text: "Last attempt", class: "nowrap" }, ({ triedAt }) =>
            triedAt ? <Ago at={triedAt} now={now} /> : "–",
          ),
          column({ text: "Command to retry", class: "wrap" }, ({ command }) => (
            <code>bun run {command}</code>
          )),
        ]}
      />
    </Card>
  );
}
