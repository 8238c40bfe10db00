/** What a look at a customer's own database has found, step by step. */
import type { Finding } from "../../core/control";
import { CopyField } from "../components";

const STEPS: [Finding["step"], string][] = [
  ["address", "Address"],
  ["connection", "Connection"],
  ["encryption", "Encryption"],
  ["rights", "Rights"],
  ["schema", "Schema"],
];

const WORDS = { ok: "Well", warning: "Mind", wrong: "Wrong" };

export function Findings({ findings }: { findings: Finding[] }) {
  const isUsable = findings.every((finding) => finding.state !== "wrong");
  return (
    <div class="findings" role="status">
      <p class="note-title">{isUsable ? "This database can be used" : "This database cannot be used yet"}</p>
      <ul>
        {STEPS.map(([step, name]) => {
          const finding = findings.find((one) => one.step === step);
          return (
            <li key={step} class={finding?.state ?? "untried"}>
              <span class="finding-step">
                {name}
                <span class="visually-hidden">: {finding ? WORDS[finding.state] : "not tried"}</span>
              </span>
              <span class="wrap">
                {finding ? finding.message : "Not looked at yet"}
                {finding?.remedy ? (
                  <CopyField id={`remedy-${step}`} label="To mend it" value={finding.remedy} />
                ) : null}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
