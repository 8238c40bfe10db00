/**
 * Looks at the schema when the feed tells of a change of it, or when it is time; tables that may have another shape are
 * not worked on before.
 */

import { wait } from "../../../async";
import { asBasetideError } from "../../../errors";
import type { ReadAs } from "../../../replica";
import { isOutdated, isWholeBases, readAsNow } from "../../engine";
import { failurePauseMs } from "../../pacing";
import type { Live } from "./live";

const TICK_MS = 250;

/** Looks for ever. */
export async function keepLooking(live: Live): Promise<void> {
  const { shapes, pending, schemaBell, stop, rounds, wake } = live;
  const named = new Map<string, ReadAs>();
  let compared: unknown[] = [];
  for (let failures = 0; ; ) {
    const { mark } = pending;
    const doubted = pending.doubted();
    try {
      if (doubted.length > 0) await shapes.lookAgain();
      else await shapes.tend();
      failures = 0;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (isWholeBases(error)) throw error;
      await rounds.failed(error);
      await wait(failurePauseMs(++failures, error), stop);
      continue;
    }
    const shown = [live.input.memory.schema, shapes.catalog];
    if (shown.some((one, index) => one !== compared[index])) nameOutdated(live, named);
    compared = shown;
    if (doubted.length > 0) {
      pending.settleDoubts(mark);
      live.settled();
      wake.ring();
    }
    forgetGone(live);
    await schemaBell.wait(TICK_MS, stop);
  }
}

/** What waits of tables that the source has no more, also what somebody had in hand when they went. */
function forgetGone({ pending, shapes, settled }: Live): void {
  const gone = pending.waitingTables().filter((id) => !shapes.table(id).source && !pending.isDoubted(id));
  for (const id of gone) pending.forgetTable(id);
  if (gone.length > 0) settled();
}

/**
 * Tables whose cells may be other than they were read are swept.
 *
 * @param named for what each was named last
 */
export function nameOutdated(
  { input, shapes, pending, wake }: Pick<Live, "input" | "shapes" | "pending" | "wake">,
  named: Map<string, ReadAs>,
): void {
  for (const [tableId, now] of readAsNow(input.memory, input.reader.connection)) {
    const { live: table, rebuild } = shapes.table(tableId);
    // A rebuild reads all cells.
    if (!table || rebuild || !isOutdated(table.readAs, now)) {
      // It may come to be what it was named for once more.
      named.delete(tableId);
      continue;
    }
    if (Bun.deepEquals(named.get(tableId), now)) continue;
    named.set(tableId, now);
    pending.nameTable(tableId, pending.durableCursor);
    wake.ring();
  }
}
