/** The results of checking a customer's own database, one by one. */
import { isProblem } from "../../core/check-result";
import type { DatabaseCheck } from "../../core/control/placement";
import { CopyField } from "../components";

const CHECKS: [DatabaseCheck["check"], string][] = [
  ["address", "Address"],
  ["connection", "Server"],
  ["pooler", "Pooler"],
  ["encryption", "Encryption"],
  ["latency", "Distance"],
  ["rights", "Privileges"],
  ["schema", "Schema"],
];

const WORDS = { ok: "OK", warning: "Warning", problem: "Error" };

export function CheckResults({ results }: { results: DatabaseCheck[] }) {
  const isUsable = !results.some(isProblem);
  return (
    <div class="findings" role="status">
      <p class="note-title">{isUsable ? "This database can be used" : "This database cannot be used yet"}</p>
      <ul>
        {CHECKS.map(([check, name]) => {
          const result = results.find((one) => one.check === check);
          return (
            <li key={check} class={result?.severity ?? "untried"}>
              <span class="finding-step">
                {name}
                <span class="visually-hidden">: {result ? WORDS[result.severity] : "not checked"}</span>
              </span>
              <span class="wrap">
                {result ? result.message : "Not checked yet"}
                {result?.remedy ? <Remedy id={`remedy-${check}`} text={result.remedy} /> : null}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** SQL is shown for copying, other text for reading. */
function Remedy({ id, text }: { id: string; text: string }) {
  if (text.endsWith(";")) return <CopyField id={id} label="To fix it" value={text} />;
  return <span class="finding-remedy muted small">{text}</span>;
}
