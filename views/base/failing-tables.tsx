/** The tables of a base that cannot be read, each with its cause and its next try. */

import type { Base } from "../../core/control/bases";
import { Ago } from "../components";
import { formatDuration } from "../format";

export function FailingTables({ base, now }: { base: Base; now: Date }) {
  if (base.failingTables.length === 0) return null;
  return (
    <section id="failing-tables">
      <p>These tables are not up to date; all others are synced as usual:</p>
      <ul>
        {base.failingTables.map(({ table_id, name, code, message, since, next_try_at }) => (
          <li key={table_id} class="wrap">
            <strong>{name}</strong>, since <Ago at={new Date(since)} now={now} />. {nextTry(next_try_at, now)}
            <details class="small">
              <summary>Details</summary>
              <p class="wrap">
                <code>{code}</code> {message}
              </p>
            </details>
          </li>
        ))}
      </ul>
    </section>
  );
}

function nextTry(at: string, now: Date): string {
  const waitMs = Date.parse(at) - now.getTime();
  return waitMs <= 0 ? "Next try: now." : `Next try in ${formatDuration(waitMs)}.`;
}
