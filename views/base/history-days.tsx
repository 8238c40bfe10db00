/** How long the history of a base's changes goes back. */
import type { Base } from "../../core/control/bases";
import { Button, Field } from "../components";

export const MOST_DAYS = 3650;

export function HistoryDays({ base, error }: { base: Base; error?: string | undefined }) {
  return (
    <form method="post" action={`/bases/${base.id}/history-days`} class="stack narrow">
      <Field
        label="Days of history"
        name="history_days"
        type="number"
        inputMode="numeric"
        required
        value={String(base.settings.historyDays)}
        error={error}
        hint={
          <>
            A change stays in <code>_sync_history</code> for so many days, from 1 to {MOST_DAYS}, also once
            history is off.
          </>
        }
      />
      <Button>Save</Button>
    </form>
  );
}
