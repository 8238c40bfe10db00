/** What a look at a customer's own database has found, step by step. */
import type { DatabaseCheck } from "../../core/control/placement";
import { CopyField } from "../components";

const CHECKS: [DatabaseCheck["check"], string][] = [
  ["address", "Address"],
  ["connection", "Server"],
  ["pooler", "Pooler"],
  ["encryption", "Encryption"],
  ["latency", "Distance"],
  ["rights", "Rights"],
  ["schema", "Schema"],
];

const WORDS = { ok: "Well", warning: "Mind", problem: "Wrong" };

export function Findings({ findings }: { findings: DatabaseCheck[] }) {
  const isUsable = findings.every(({ status }) => status !== "problem");
  return (
    <div class="findings" role="status">
      <p class="note-title">{isUsable ? "This database can be used" : "This database cannot be used yet"}</p>
      <ul>
        {CHECKS.map(([check, name]) => {
          const finding = findings.find((one) => one.check === check);
          return (
            <li key={check} class={finding?.status ?? "untried"}>
              <span class="finding-step">
                {name}
                <span class="visually-hidden">: {finding ? WORDS[finding.status] : "not tried"}</span>
              </span>
              <span class="wrap">
                {finding ? finding.message : "Not looked at yet"}
                {finding?.remedy ? <Remedy id={`remedy-${check}`} text={finding.remedy} /> : null}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** SQL is there to be copied, anything else to be read. */
function Remedy({ id, text }: { id: string; text: string }) {
  if (text.endsWith(";")) return <CopyField id={id} label="To mend it" value={text} />;
  return <span class="finding-remedy muted small">{text}</span>;
}
