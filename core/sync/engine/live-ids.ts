/** Which rows a live table has, under the name that it has at that moment: another table's change may rename it meanwhile. */
import { isBasetideError } from "../../errors";
import { rowIds } from "../../replica";
import { MANY_TRIES } from "../pacing";
import type { Sweep } from "./sweep";

/**
 * Returns the ids of the table's rows that `isWanted`; none if it is not live.
 *
 * @throws BasetideError `shape_changed` if the table, or its column of ids, is gone; `replica_busy`
 */
export async function liveIds(
  { replica, schemaTracker }: Pick<Sweep, "replica" | "schemaTracker">,
  tableId: string,
  isWanted: (id: string) => boolean,
): Promise<string[]> {
  for (let attempt = 1; ; attempt++) {
    const { live } = schemaTracker.table(tableId);
    if (!live) return [];
    try {
      const ids: string[] = [];
      for await (const batch of rowIds(replica, live)) for (const id of batch) if (isWanted(id)) ids.push(id);
      return ids;
    } catch (error) {
      if (!isBasetideError(error, "shape_changed") || attempt >= MANY_TRIES) throw error;
      await schemaTracker.reload();
      if (schemaTracker.table(tableId).live?.spec.name === live.spec.name) throw error;
    }
  }
}
